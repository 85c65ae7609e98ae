import { expect, test } from 'vitest'
import { readFaults } from '../../../src/sandbox/control/fault.ts'
import { joinFaults } from '../../../src/sandbox/edge/disturbance.ts'

const none = { latencyMs: 0, staleRead: false, brokenGzip: false }

test.each([
  [[], {}],
  [
    [
      { kind: 'latency', ms: 5 },
      { kind: 'latency', ms: 7 },
    ],
    { latencyMs: 12 },
  ],
  [[{ kind: 'reset' }], { loss: { how: 'reset', apply: false } }],
  [[{ kind: 'reset' }, { kind: 'stall', apply: true }], { loss: { how: 'stall', apply: true } }],
  [
    [
      { kind: 'truncate', bytes: 3 },
      { kind: 'slowBody', bytesPerSecond: 9 },
    ],
    { truncateAt: 3, bytesPerSecond: 9 },
  ],
  [[{ kind: 'brokenGzip' }, { kind: 'staleRead' }], { brokenGzip: true, staleRead: true }],
])('%j', (faults, expected) => {
  expect(joinFaults(readFaults(faults))).toEqual({ ...none, ...expected })
})

test.each([
  [
    { kind: 'status', status: 503 },
    {
      status: 503,
      headers: { 'Content-Type': 'application/json' },
      body: '{"statusCode":503,"message":"The service is not able to answer."}',
    },
  ],
  [
    { kind: 'status', status: 502, body: '<html>', headers: { 'Content-Type': 'text/html' } },
    { status: 502, headers: { 'Content-Type': 'text/html' }, body: '<html>' },
  ],
  [
    { kind: 'rateLimit', retryAfterSeconds: 4 },
    {
      status: 429,
      headers: { 'Content-Type': 'application/json', 'Retry-After': '4' },
      body: '{"statusCode":429,"message":"Rate limit is exceeded. Try again in 4 seconds."}',
    },
  ],
])('%j answers instead of the service', (fault, reply) => {
  expect(joinFaults(readFaults(fault))).toEqual({ ...none, reply })
})
