import { expect, it } from 'vitest'

import { shareDescriptors, shortageOf } from '../../src/app/descriptors.ts'
import { parseConfig } from '../../src/config/index.ts'

const v3 = { baseUrl: 'http://127.0.0.1:1', connections: 32 }
const alone = parseConfig({ upstreams: { v3 } })
const both = parseConfig({ upstreams: { v3, v2: { baseUrl: 'http://127.0.0.1:2' } } })

it.each([
  ['V3 alone', alone, 256, 64, 32],
  ['V3 and V2', both, 256, 64, 32],
  ['V3 alone', alone, 1_024, 736, 128],
  ['V3 and V2', both, 1_024, 608, 128],
  ['V3 and V2', both, 1_048_576, 1_048_032, 256],
])(
  'reserves descriptors for upstreams, the journal and the log with %s (%#)',
  (_name, config, limit, clients, console) => {
    expect(shareDescriptors(config, limit)).toEqual({ limit, clients, console })
  },
)

it('warns with the limits if a process can serve only few clients', () => {
  expect(shortageOf(shareDescriptors(alone, 256))).toMatch(/\b256 files\b.*\b64\b/)
  expect(shortageOf(shareDescriptors(alone, 1_024))).toBeUndefined()
  expect(shortageOf(undefined)).toBeUndefined()
})

it('finds the file limit of this process', () => {
  expect(shareDescriptors(alone)?.limit ?? Infinity).toBeGreaterThan(100)
})
