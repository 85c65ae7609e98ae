import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { request } from 'undici'

import { startChild } from './child.ts'
import { decoderNames } from './decoders.ts'
import { legacyBatch } from './legacy-batch.ts'
import type { Row } from './report.ts'

const RECORDS = 20_000
const MIB = 1_048_576
const AIM_MIB = 150

/** Measures, for each decoder, how much a new process grows while it decodes one batch of 20,000 records. */
export async function benchDecodeMemory(): Promise<Row[]> {
  const { bytes, contentType } = legacyBatch(RECORDS, 1)
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
  const file = join(folder, 'batch')
  writeFileSync(file, bytes)
  try {
    const rows: Row[] = []
    for (const name of decoderNames) rows.push(await measureDecoder(name, file, contentType))
    return rows
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function measureDecoder(name: string, file: string, contentType: string): Promise<Row> {
  const child = await startChild('decode-process.ts', [name, file, contentType], 0)
  const { records, growthBytes = 0, heapBytes = 0 } = await child.ask('decode')
  await child.stop()
  if (records !== RECORDS) throw new Error(`${name} decoded ${records ?? 0} of ${RECORDS} records`)
  return {
    bench: `decode ${RECORDS}: memory`,
    candidate: name,
    value: `peak +${mib(growthBytes)} MiB, result ${mib(heapBytes)} MiB`,
    ratio: '',
    aim: '',
    met: undefined,
  }
}

/** Measures how much a new adapter process grows while it answers one batch of 20,000 records. */
export async function benchAdapterMemory(): Promise<Row[]> {
  const upstream = await startChild('upstream-process.ts', [], 1)
  const adapter = await startChild(
    'adapter-process.ts',
    [`http://127.0.0.1:${upstream.ready['port'] ?? 0}`],
    0,
  )
  try {
    const before = await adapter.ask('memory')
    await sendBatch(adapter.ready['port'] ?? 0)
    const after = await adapter.ask('memory')
    const { posts = 0 } = await upstream.ask('count')
    if (posts !== RECORDS) throw new Error(`the upstream got ${posts} of ${RECORDS} records`)
    const growth = (after['peakBytes'] ?? Number.NaN) - (before['rssBytes'] ?? Number.NaN)
    return [
      {
        bench: `adapter: memory for a batch of ${RECORDS}`,
        candidate: 'adapter',
        value: `peak +${mib(growth)} MiB over ${mib(before['rssBytes'] ?? Number.NaN)} MiB`,
        ratio: '',
        aim: `< ${AIM_MIB} MiB`,
        met: growth < AIM_MIB * MIB,
      },
    ]
  } finally {
    await Promise.all([adapter.stop(), upstream.stop()])
  }
}

async function sendBatch(port: number): Promise<void> {
  const { bytes, contentType } = legacyBatch(RECORDS, 1)
  const { statusCode, body } = await request(`http://127.0.0.1:${port}/V2/Attendance/$batch`, {
    method: 'POST',
    headers: {
      'content-type': contentType,
      authorization: 'bearer bench',
      'ocp-apim-subscription-key': 'bench',
    },
    body: bytes,
  })
  const created = (await body.text()).split('HTTP/1.1 201 Created\r\n').length - 1
  if (statusCode !== 200 || created !== RECORDS)
    throw new Error(`${statusCode}, ${created} of ${RECORDS} created`)
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(0)
}
