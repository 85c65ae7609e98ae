import { BatchChangeSet, CreateRequestBuilder, ODataBatchRequestBuilder } from '@sap-cloud-sdk/odata-v4'
import { describe, expect, it } from 'vitest'

import { AttendanceRecord, AttendanceRecordApi, servicePath } from './support/attendance-api.ts'
import {
  type Mark,
  marksOf,
  type Service,
  startService,
  type RecordAnswer,
  recordAnswerOf,
} from './support/start-service.ts'

const api = new AttendanceRecordApi()

/** Returns the register as create requests in changesets of these sizes. */
function changesetsOf(marks: readonly Mark[], sizes: readonly number[]) {
  let from = 0
  return sizes.map((size) => {
    const own = marks.slice(from, (from += size)).map((mark) => {
      const entity = api
        .entityBuilder()
        .present(mark.Present)
        .absent(mark.Absent)
        .learner(mark.Learner)
        .attendableEvent(mark.AttendableEvent)
        .schoolAttendanceCode(mark.SchoolAttendanceCode)
        .minutesLate(mark.MinutesLate)
        .comment(mark.Comment)
        .build()
      return api.requestBuilder().create(entity)
    })
    return new BatchChangeSet(own)
  })
}

function toMark(entity: AttendanceRecord): Mark {
  return {
    Present: entity.present,
    Absent: entity.absent,
    Learner: entity.learner,
    AttendableEvent: entity.attendableEvent,
    SchoolAttendanceCode: entity.schoolAttendanceCode,
    MinutesLate: entity.minutesLate,
    Comment: entity.comment,
  }
}

/** Posts the register in one batch of three changesets, and returns each part as the SDK reads it, changeset by changeset. */
async function post(service: Service): Promise<RecordAnswer[][]> {
  const batch = new ODataBatchRequestBuilder(servicePath, changesetsOf(service.register, [4, 2, 1]))
  const responses = await batch.addCustomHeaders(service.headers).execute({ url: service.adapter.url })
  return responses.map((response) => {
    if (!response.isWriteResponses()) throw new Error('the part is not a changeset')
    return response.responses.map(({ httpCode, body, as }) => {
      if (httpCode !== 201) return recordAnswerOf(httpCode, body)
      if (as === undefined) throw new Error('the part has no entity')
      return { status: httpCode, mark: toMark(as(api)) }
    })
  })
}

describe('the SAP Cloud SDK', () => {
  it.each(['nested', 'auto'])(
    'reads the outcome of each record of several changesets when the layout is %s',
    async (layout) => {
      const service = await startService({ layout })
      const { expected } = service
      expect(await post(service)).toEqual([expected.slice(0, 4), expected.slice(4, 6), expected.slice(6)])
      expect(await service.acceptedMarks()).toEqual(marksOf(expected))
    },
  )

  it('reads the parts for a partner with the quirk msgtypeResponse', async () => {
    const service = await startService({ layout: 'nested', quirks: { msgtypeResponse: true } })
    expect((await post(service)).flat()).toEqual(service.expected)
  })

  it('writes one record, and reads it back with its own query', async () => {
    const service = await startService()
    const [mark] = service.register
    const [changeset] = changesetsOf(service.register, [1])
    const [create] = changeset?.requests ?? []
    if (mark === undefined || !(create instanceof CreateRequestBuilder))
      throw new Error('no record to create')
    const destination = { url: service.adapter.url }
    const created: unknown = await create.addCustomHeaders(service.headers).execute(destination)
    expect(created).toBeInstanceOf(AttendanceRecord)
    const { LEARNER, ATTENDABLE_EVENT } = api.schema
    const found = await api
      .requestBuilder()
      .getAll()
      .filter(LEARNER.equals(mark.Learner), ATTENDABLE_EVENT.equals(mark.AttendableEvent))
      .addCustomHeaders(service.headers)
      .execute(destination)
    expect(found.map(toMark)).toEqual([mark])
  })

  it('reports the rejection of one record as an error', async () => {
    const service = await startService()
    const [, , wrong] = service.register
    const [changeset] = changesetsOf(wrong === undefined ? [] : [wrong], [1])
    const [create] = changeset?.requests ?? []
    if (!(create instanceof CreateRequestBuilder)) throw new Error('no record to create')
    await expect(
      create.addCustomHeaders(service.headers).execute({ url: service.adapter.url }),
    ).rejects.toThrow('Create request failed!')
    expect(await service.acceptedMarks()).toEqual([])
  })
})
