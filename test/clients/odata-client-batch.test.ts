import { OData } from '@odata/client'
import { expect, test } from 'vitest'

import { type Mark, marksOf, type Service, startService, recordAnswerOf } from './support/start-service.ts'

function post(service: Service) {
  const client = OData.New4({ serviceEndpoint: service.root, commonHeaders: { ...service.headers } })
  return client.execBatchRequests(
    service.register.map((entity) =>
      client.newBatchRequest<Mark>({ collection: 'AttendanceRecords', method: 'POST', entity }),
    ),
  )
}

test.each(['flat', 'nested', 'auto'])(
  '@odata/client reads the outcome of each record when the layout is %s and each record has its own changeset',
  async (layout) => {
    const service = await startService({ layout })
    const replies = await post(service)
    const answers = await Promise.all(
      replies.map(async (reply) => recordAnswerOf(reply.status, await reply.json())),
    )
    expect(answers).toEqual(service.expected)
    expect(await service.acceptedMarks()).toEqual(marksOf(service.expected))
  },
)

test('@odata/client cannot read the parts for a partner with the quirk msgtypeResponse', async () => {
  const service = await startService({ quirks: { msgtypeResponse: true } })
  expect(await post(service)).toEqual(service.register.map(() => undefined))
})
