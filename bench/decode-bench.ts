import { createDecoder, type Decoder, type DecoderName, decoderNames } from './decoders.ts'
import { type LegacyBatch, legacyBatch } from './legacy-batch.ts'
import { checksum } from './posted-records.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

/** For each number of records in a batch, the factor by which the decoder should be faster than @sap/cds. */
const sizes = [
  { records: 30, aim: 5, rounds: 15 },
  { records: 1_000, aim: 5, rounds: 15 },
  { records: 20_000, aim: 8, rounds: 9 },
] as const

const SAMPLE_MS = 150

/** Measures how fast each decoder decodes the same bytes. Throws if two decoders return different records. */
export async function benchDecode(): Promise<Row[]> {
  const decoders = new Map(decoderNames.map((name) => [name, createDecoder(name)]))
  const rows: Row[] = []
  for (const { records, aim, rounds } of sizes) {
    const batch = legacyBatch(records, records)
    await verify(decoders, batch, records)
    const repeats = new Map<DecoderName, number>()
    const rates = await interleave(decoderNames, rounds, async (name) => {
      const decoder = decoders.get(name)
      if (decoder === undefined) throw new Error(`no decoder ${name}`)
      const { seconds, times } = await sample(decoder, batch, repeats.get(name) ?? 1)
      repeats.set(name, Math.max(1, Math.round((times * SAMPLE_MS) / 1000 / seconds)))
      return (records * times) / seconds
    })
    rows.push(...toRows(rates, records, batch.bytes.length, aim))
  }
  return rows
}

async function verify(
  decoders: ReadonlyMap<DecoderName, Decoder>,
  batch: LegacyBatch,
  records: number,
): Promise<void> {
  const sums = new Map<string, string>()
  for (const [name, decoder] of decoders) {
    const result = await decoder.decode(batch.bytes, batch.contentType)
    const decoded = decoder.toRecords(result)
    sums.set(name, checksum(decoded))
    if (decoded.length !== records) throw new Error(`${name} decoded ${decoded.length} of ${records} records`)
  }
  if (new Set(sums.values()).size > 1) {
    throw new Error(`The decoders disagree: ${JSON.stringify(Object.fromEntries(sums))}`)
  }
}

async function sample(
  decoder: Decoder,
  { bytes, contentType }: LegacyBatch,
  times: number,
): Promise<{ seconds: number; times: number }> {
  const start = performance.now()
  for (let turn = 0; turn < times; turn += 1) await decoder.decode(bytes, contentType)
  return { seconds: (performance.now() - start) / 1000, times }
}

function toRows(
  rates: ReadonlyMap<DecoderName, number[]>,
  records: number,
  bytes: number,
  aim: number,
): Row[] {
  const own = rates.get('markbridge') ?? []
  return decoderNames.map((name) => {
    const values = rates.get(name) ?? []
    const ratio = medianRatio(own, values)
    const aims: Partial<Record<DecoderName, number>> = { '@sap/cds': aim, dicer: 1 }
    return {
      bench: `decode ${records} (${(bytes / records).toFixed(0)} B each)`,
      candidate: name,
      value: `${(median(values) / 1000).toFixed(0)}k records/s`,
      ratio: name === 'markbridge' ? '' : `markbridge ${ratio.toFixed(2)}x`,
      aim: aims[name] === undefined ? '' : `>= ${aims[name]}x`,
      met: aims[name] === undefined ? undefined : ratio >= aims[name],
    }
  })
}
