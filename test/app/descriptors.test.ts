import { expect, it } from 'vitest'

import { shareDescriptors, shortageOf } from '../../src/app/descriptors.ts'
import { parseConfig } from '../../src/config/index.ts'

const v3 = { baseUrl: 'http://127.0.0.1:1', connections: 32 }
const alone = parseConfig({ upstreams: { v3 } })
const both = parseConfig({ upstreams: { v3, v2: { baseUrl: 'http://127.0.0.1:2' } } })

it.each([
  ['V3 alone', 256, alone, 64, 32],
  ['V3 and V2', 256, both, 64, 32],
  ['V3 alone', 1_024, alone, 736, 128],
  ['V3 and V2', 1_024, both, 608, 128],
  ['V3 and V2', 1_048_576, both, 1_048_032, 256],
])(
  'shareDescriptors reserves file descriptors for upstreams, the journal and the log, for %s and a limit of %s files',
  (_name, limit, config, clients, console) => {
    expect(shareDescriptors(config, limit)).toEqual({ limit, clients, console })
  },
)

it('shortageOf returns a warning with the limits of open files and of clients if a process can serve only few clients', () => {
  expect(shortageOf(shareDescriptors(alone, 256))).toMatch(/\b256 files\b.*\b64\b/)
  expect(shortageOf(shareDescriptors(alone, 1_024))).toBeUndefined()
  expect(shortageOf(undefined)).toBeUndefined()
})

it('shareDescriptors reads the limit of open files from this process', () => {
  expect(shareDescriptors(alone)?.limit ?? Infinity).toBeGreaterThan(100)
})
