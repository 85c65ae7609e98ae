import { readFileSync } from 'node:fs'

import { serveCommands } from './child.ts'
import { createDecoder, decoderNames } from './decoders.ts'
import { peakRss, resetPeakRss } from './peak-rss.ts'

// One decoder in a process of its own. Arguments: its name, the file of the batch, its Content-Type.

const [, , wanted, file = '', contentType = ''] = process.argv
const name = decoderNames.find((candidate) => candidate === wanted)
if (name === undefined) throw new Error('the first argument names no decoder')
const decoder = createDecoder(name)
const bytes = readFileSync(file)

serveCommands(
  {},
  {
    decode: async () => {
      globalThis.gc?.()
      resetPeakRss()
      const { rss, heapUsed } = process.memoryUsage()
      const result = await decoder.decode(bytes, contentType)
      const peakBytes = peakRss()
      globalThis.gc?.()
      const heapBytes = process.memoryUsage().heapUsed - heapUsed
      // After the heap was read, so that the result is still held there.
      const records = decoder.toRecords(result).length
      return { records, growthBytes: peakBytes - rss, heapBytes }
    },
  },
)
