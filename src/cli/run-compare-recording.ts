import { openSides, type OpenedSides } from '../app/compare/open-sides.ts'
import { toPartner } from '../app/partners.ts'
import { createOwnRules, type OwnRules } from '../compare/diff/index.ts'
import { compareRecordings, listRecordings } from '../compare/recording/index.ts'
import { formatDay, newRunName, openRunFiles } from '../compare/run/index.ts'
import { outcomeOf, outcomeStatus } from '../compare/run-outcome.ts'
import { loadConfig, type PartnerConfig, readEnvironment } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { formatRun } from './comparing/run-text.ts'
import { openTarget, type TargetFlags } from './comparing/run-target.ts'
import { untilSignal } from './comparing/until-signal.ts'
import { Progress } from './progress.ts'
import { readRecordingKey } from './recordings/recording-key.ts'

/** The flags of `compare run --recording`. */
export interface CompareRecordingOptions extends TargetFlags {
  readonly recording: string
  /** `env:NAME` or `file:path`. */
  readonly key?: string
  readonly out: string
  readonly json?: boolean
}

/** Compares recordings, prints the result, writes its document, and returns the exit status. Posts nothing, and without `--v3` asks nothing. */
export async function runCompareRecording(options: CompareRecordingOptions): Promise<number> {
  const startedAt = new Date()
  const folders = await listRecordings(options.recording)
  const key = options.key === undefined ? undefined : await readRecordingKey(options.key)
  const files = openRunFiles(options.out)
  const { partner, name, rules, sides } = await openPartner(options)
  const stopping = untilSignal()
  const progress = openProgress(folders.length)
  try {
    const compared = await compareRecordings(folders, {
      partner,
      key,
      rules,
      v3: sides?.answer,
      nowMs: Date.now,
      signal: stopping.signal,
      onDone: () => progress.advance(undefined),
    })
    progress.stop()
    const { tally, from, to, complete, reads, servedByV3 } = compared
    const run = newRunName(startedAt.getTime())
    const document = tally.toDocument({
      run,
      kind: 'recording',
      partner: name,
      startedAt: startedAt.toISOString(),
      endedAt: new Date().toISOString(),
      ...{ from, to, complete },
    })
    const path = await files.writeDocument(run, `${JSON.stringify(document, null, 2)}\n`)
    console.log(options.json === true ? JSON.stringify(document) : formatRun({ document, path }))
    if (reads > 0)
      console.error(
        `markbridge: ${reads} recorded read(s) were left out: --v3 <url> sets them against what V3 answers now.`,
      )
    if (servedByV3 > 0)
      console.error(
        `markbridge: ${servedByV3} exchange(s) that V3 served were left out: their replies are the adapter's own.`,
      )
    return outcomeStatus[outcomeOf(document)]
  } finally {
    progress.stop()
    stopping.stop()
    await sides?.close()
  }
}

/** The partner whose settings count, and with `--v3` its way to V3. */
async function openPartner(options: CompareRecordingOptions) {
  const { config: path, partner: id, v2, v3 } = options
  if (v2 !== undefined)
    throw new AdapterError('ADP_USAGE', 'V2 is not asked with --recording: leave --v2 out.')
  if (v3 === undefined) {
    // No service is called: any address of V3 will do.
    const config = await loadConfig(path, path === undefined ? { v3: 'http://127.0.0.1' } : {})
    const found = choose(config.partners, id)
    return {
      partner: toPartner(found, undefined, undefined, config),
      name: path === undefined ? null : found.id,
      rules: rulesOf(found),
      sides: undefined,
    }
  }
  // V2 is opened with the other side and never called.
  const target = await openTarget({ ...options, v2: 'http://127.0.0.1' }, readEnvironment())
  const sides: OpenedSides = openSides({ ...target, onCodesUnknown: () => undefined })
  const partner = toPartner(target.partner, undefined, undefined, target.config)
  return { partner, name: target.partnerName, rules: rulesOf(target.partner), sides }
}

/** The partner's own rules; what expired before today counts again. */
function rulesOf({ compare: { rules } }: PartnerConfig): OwnRules | undefined {
  return rules.length === 0 ? undefined : createOwnRules(rules, formatDay(Date.now()))
}

function choose(partners: readonly PartnerConfig[], id: string | undefined): PartnerConfig {
  const found =
    id === undefined && partners.length === 1 ? partners[0] : partners.find((one) => one.id === id)
  if (found !== undefined) return found
  const known = partners.map((one) => one.id).join(', ')
  throw new AdapterError(
    'ADP_USAGE',
    `Name the partner whose settings count: --partner <id>, one of ${known}.`,
  )
}

function openProgress(total: number): Progress {
  return new Progress({
    output: process.stderr,
    status: process.stderr,
    isTerminal: process.stderr.isTTY && !readEnvironment().isDumbTerminal,
    total,
    nowMs: () => performance.now(),
    unit: 'exchanges',
  })
}
