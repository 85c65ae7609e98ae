import { readFileSync } from 'node:fs'

import { serveCommands } from './child.ts'
import { createDecoder, decoderNames } from './decoders.ts'
import { peakRss, resetPeakRss } from './peak-rss.ts'

// Measures the memory of one decoder. Arguments: the name of the decoder, the file of the batch, and the Content-Type of the batch.

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
      // The result is used after the measurement of the heap, so that the garbage collector cannot free it before.
      const records = decoder.toRecords(result).length
      return { records, growthBytes: peakBytes - rss, heapBytes }
    },
  },
)
