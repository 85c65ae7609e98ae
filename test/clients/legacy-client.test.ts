import { randomUUID } from 'node:crypto'

import { describe, expect, it } from 'vitest'

import { type LegacyChoices, postLegacy, readLegacy } from './support/legacy-client.ts'
import { marksOf, type Service, startService, recordAnswerOf } from './support/start-service.ts'

const post = (service: Service, choices?: LegacyChoices) =>
  postLegacy(`${service.root}$batch`, service.headers, service.register, choices)

describe('a client that sends the bytes of service.md 4.2', () => {
  it.each<[string, LegacyChoices]>([
    ['batch_<changeset id> in the header', { prefix: 'batch' }],
    ['changeset_<changeset id> in the header', { prefix: 'changeset' }],
    ['bare line feeds', { lineEnd: '\n' }],
    ['another path in the parts', { innerPath: '' }],
  ])(
    'reads the outcome of each record by position and Content-ID when it sends %s',
    async (_name, choices) => {
      const service = await startService()
      const answer = await post(service, choices)
      const parts = readLegacy(answer)
      expect(answer.status).toBe(200)
      expect(parts.map(({ status, json }) => recordAnswerOf(status, json))).toEqual(service.expected)
      expect(parts.map(({ contentId }) => contentId)).toEqual(['1', '2', '3', '4', '5', '6', '7'])
      expect(await service.acceptedMarks()).toEqual(marksOf(service.expected))
    },
  )

  it('gets a single 200 without parts if the ids in its header and body differ, although the adapter posts the marks', async () => {
    const service = await startService()
    const answer = await post(service, { headerId: randomUUID() })
    const [batch, changeset] = [...answer.text.matchAll(/boundary=(\S+)/g)].map(([, id]) => id ?? '')
    expect([answer.status, answer.contentType.split('_')[0]]).toEqual([
      200,
      'multipart/mixed; boundary=batchresponse',
    ])
    expect(batch).toMatch(/^changesetresponse_[0-9a-f-]{36}$/)
    expect([changeset, answer.text.includes('HTTP/1.1')]).toEqual([undefined, false])
    expect(await service.acceptedMarks()).toEqual(marksOf(service.expected))
  })

  it('reads the outcome of each record when it sends a register in two batches', async () => {
    const service = await startService()
    const { register, expected, root, headers } = service
    const halves = [register.slice(0, 4), register.slice(4)]
    const answers = await Promise.all(halves.map((marks) => postLegacy(`${root}$batch`, headers, marks)))
    const parts = answers.map(readLegacy)
    expect(parts.map((own) => own.map(({ contentId }) => contentId).join())).toEqual(['1,2,3,4', '1,2,3'])
    expect(parts.flat().map(({ status, json }) => recordAnswerOf(status, json))).toEqual(expected)
  })
})
