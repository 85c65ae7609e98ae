import { o } from 'odata'
import { describe, expect, it } from 'vitest'

import { marksOf, type Service, startService, recordAnswerOf } from './support/start-service.ts'

interface Part {
  readonly contentId: number
  readonly status: number
  readonly body: unknown
}

interface Choices {
  /** True to put all records into one changeset, false to post them outside a changeset. */
  readonly useChangset: boolean
  /** True to address records as `AttendanceRecords` in place of the full URL. */
  readonly useRelativeURLs: boolean
  /** True to use one object of headers for the batch and its parts, so that every part declares its JSON as multipart/mixed. */
  readonly sharedHeaders: boolean
}

async function post(
  service: Service,
  { useChangset, useRelativeURLs, sharedHeaders }: Choices,
  fragment = 'value',
): Promise<Part[]> {
  const newHeaders = (): Headers => new Headers({ ...service.headers, 'Content-Type': 'application/json' })
  const client = o(service.root, {
    headers: newHeaders(),
    fragment,
    batch: {
      endpoint: '$batch',
      boundaryPrefix: 'batch_',
      changsetBoundaryPrefix: 'changeset_',
      useChangset,
      useRelativeURLs,
      ...(sharedHeaders ? {} : { headers: newHeaders() }),
    },
  })
  for (const mark of service.register) client.post('AttendanceRecords', mark)
  return (await client.batch()) as Part[]
}

const plain: Choices = { useChangset: false, useRelativeURLs: false, sharedHeaders: false }

describe('the client o.js', () => {
  it.each([
    ['one changeset', 'flat', { ...plain, useChangset: true }],
    ['one changeset', 'nested', { ...plain, useChangset: true }],
    ['records outside a changeset', 'flat', plain],
    ['records outside a changeset', 'nested', plain],
    ['relative addresses', 'flat', { ...plain, useRelativeURLs: true }],
    ['the headers of the batch on every record', 'flat', { ...plain, sharedHeaders: true }],
    [
      'the headers of the changeset on every record',
      'nested',
      { ...plain, useChangset: true, sharedHeaders: true },
    ],
  ])(
    'reads the outcome of each record when it posts a batch with %s and the layout is %s',
    async (_name, layout, choices) => {
      const service = await startService({ layout })
      const parts = await post(service, choices)
      expect(parts.map(({ status, body }) => recordAnswerOf(status, body))).toEqual(service.expected)
      expect(parts.map(({ contentId }) => contentId)).toEqual(service.register.map((_, index) => index + 1))
      expect(await service.acceptedMarks()).toEqual(marksOf(service.expected))
    },
  )

  it('reads the parts for a partner with both quirks if the `fragment` setting of the client is d', async () => {
    const service = await startService({ quirks: { dataEnvelope: true, msgtypeResponse: true } })
    const parts = await post(service, { ...plain, useChangset: true }, 'd')
    expect(parts.map(({ status, body }) => recordAnswerOf(status, body))).toEqual(service.expected)
  })

  it('reads records from value, or from d.results for a partner with dataEnvelope', async () => {
    const plainService = await startService()
    const [learner] = plainService.samples.learners
    const query = { $filter: `Learner eq ${learner}`, $top: 3, $select: 'Learner' }
    const read = (service: Service, fragment: string): Promise<unknown> =>
      o(service.root, { headers: new Headers(service.headers), fragment })
        .get('AttendanceRecords')
        .query(query)
    const rows = Array.from({ length: 3 }, () => ({ Learner: learner }))
    expect(await read(plainService, 'value')).toEqual(rows)
    const quirky = await startService({ quirks: { dataEnvelope: true } })
    expect(await read(quirky, 'd')).toMatchObject({ results: rows })
  })
})
