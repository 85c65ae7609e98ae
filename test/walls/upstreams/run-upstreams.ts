import { createClients, type Finding, judge, type Told } from './exchanges.ts'
import { startOddService } from './odd-service.ts'
import { startAdapterProcess } from './adapter-process.ts'

export interface UpstreamsRun {
  readonly seed: number
  readonly exchanges: number
  readonly only?: number | undefined
  readonly concurrency: number
  readonly onPiece?: (line: string) => void
}

export interface UpstreamsReport {
  readonly findings: readonly Finding[]
  readonly internalErrors: readonly string[]
  readonly unbalanced: readonly string[]
  /** The exit status of the adapter, or null if it had to be killed. */
  readonly status: number | null
  /** Processor time of the longest turn of the adapter's event loop, in milliseconds. */
  readonly longestTurnMs: number
  readonly statuses: Readonly<Record<string, number>>
  readonly claims: Readonly<Record<string, number>>
  readonly calls: Readonly<Record<string, number>>
}

/** The number of exchanges between two checks of the balance. */
const PIECE = 5_000
/**
 * The share of the exchanges, at the end of the run, in which a `$batch` may be too long. In these exchanges most records are posted one by
 * one.
 */
const TOO_LONG_SHARE = 0.1
/** The number of exchanges at the start in which the longest turn of the event loop is ignored, because V8 still compiles the code. */
const WARM_UP = 400

/** Makes all exchanges of a run, and compares the answers to clients with the records of the service. */
export async function runUpstreams({
  seed,
  exchanges,
  only,
  concurrency,
  onPiece,
}: UpstreamsRun): Promise<UpstreamsReport> {
  const service = await startOddService(seed, exchanges * (1 - TOO_LONG_SHARE))
  const adapter = await startAdapterProcess(service.url)
  const clients = createClients(adapter.port, seed, concurrency)
  const findings: Finding[] = []
  const told: Told[] = []
  const unbalanced: string[] = []
  let longestTurnMs = 0
  let next = only ?? 0
  const end = only === undefined ? exchanges : only + 1
  const work = async (until: number): Promise<void> => {
    while (next < until && adapter.crash() === undefined) told.push(await clients.exchange(next++, findings))
  }
  const bounds = [
    Math.min(WARM_UP, end),
    ...Array.from({ length: Math.ceil(end / PIECE) }, (_, n) => Math.min(end, (n + 1) * PIECE)),
  ]
  for (const until of bounds) {
    await Promise.all(Array.from({ length: concurrency }, () => work(until)))
    const crash = adapter.crash()
    if (crash !== undefined) {
      findings.push({ exchange: next, what: 'crash', detail: crash })
      break
    }
    const turnMs = await adapter.longestTurnMs()
    if (until > WARM_UP) longestTurnMs = Math.max(longestTurnMs, turnMs)
    // The balance of a single exchange is not checked, because the exchange may contain no record.
    if (only === undefined) unbalanced.push(...(await adapter.unbalanced()))
    onPiece?.(`${until} exchanges, ${findings.length} findings, longest turn ${turnMs} ms`)
  }
  const internalErrors = adapter.internalErrors()
  const status = await adapter.close()
  clients.close()
  service.close()
  for (const own of told) findings.push(...judge(service, own))
  const count = (items: readonly (string | number)[]): Record<string, number> =>
    Object.fromEntries([...Map.groupBy(items, (item) => item)].map(([item, { length }]) => [item, length]))
  return {
    ...{ findings, internalErrors, unbalanced, status, longestTurnMs },
    statuses: count(told.map((own) => own.status)),
    claims: count(told.flatMap((own) => own.claims.map(({ claim }) => claim))),
    calls: Object.fromEntries(service.calls),
  }
}
