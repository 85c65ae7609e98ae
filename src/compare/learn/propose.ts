import { defaultErrorMapping } from '../../translate/index.ts'
import type { Learned } from './learned.ts'
import { WITHHELD } from './observe-exchange.ts'

/** The settings of a partner that can be learned. */
export interface LearnableSettings {
  readonly layout: string
  readonly quirks: {
    readonly dataEnvelope: boolean
    readonly msgtypeResponse: boolean
    readonly mismatch: string
  }
  readonly errorMessages: Readonly<Record<string, string>>
  readonly v3: { readonly eventType: string; readonly codeType: string }
}

/** What was seen, and in how many exchanges. */
interface Observation {
  readonly seen: string
  readonly count: number
}

/** What the evidence says of one key of the configuration. */
interface Proposal {
  /** `quirks.dataEnvelope` */
  readonly path: string
  readonly current: string | boolean
  /** `change`: the evidence is for `proposed`. `keep`: for the current value. `contradictory`, `none`: nothing can be proposed. */
  readonly result: 'change' | 'keep' | 'contradictory' | 'none'
  /** Only with `change`. */
  readonly proposed?: string | boolean
  readonly evidence: readonly Observation[]
  /** What the evidence cannot show, where there is such a thing. */
  readonly note?: string
}

/** An error that V2 answered with. */
interface LearnedError {
  readonly status: number
  readonly code: string
  /** `(withheld)`: it may hold a value of a record. */
  readonly message: string
  readonly count: number
}

interface LearnedProposals {
  readonly exchanges: { readonly batch: number; readonly record: number; readonly read: number }
  /** Replies that have the form of none. */
  readonly unreadable: number
  readonly proposals: readonly Proposal[]
  readonly errors: readonly LearnedError[]
}

/** Proposes settings from what was counted: only what all of the evidence says, and nothing without any. */
export function propose(learned: Learned, settings: LearnableSettings): LearnedProposals {
  const countOf = (name: string): number => learned.get(name) ?? 0
  return {
    exchanges: {
      batch: countOf('exchange/batch'),
      record: countOf('exchange/record'),
      read: countOf('exchange/read'),
    },
    unreadable: countOf('reply/unreadable'),
    proposals: [
      proposeLayout(learned, settings.layout),
      proposeValue('quirks.dataEnvelope', settings.quirks.dataEnvelope, [
        { value: true, seen: 'records inside d', count: countOf('envelope/data') },
        { value: false, seen: 'records without an envelope', count: countOf('envelope/plain') },
      ]),
      proposeValue('quirks.msgtypeResponse', settings.quirks.msgtypeResponse, [
        { value: true, seen: 'parts with msgtype=response', count: countOf('part/msgtype') },
        { value: false, seen: 'parts without a msgtype', count: countOf('part/http') },
      ]),
      proposeMismatch(learned, settings.quirks.mismatch),
      ...proposeMessages(learned, settings.errorMessages),
      ...(['eventType', 'codeType'] as const).map((name) =>
        proposeValue(
          `v3.${name}`,
          settings.v3[name],
          [...learned]
            .filter(([key]) => key.startsWith(`type/${name}/`))
            .map(([key, count]) => {
              const value = key.slice(`type/${name}/`.length)
              return { value, seen: `Type ${value}`, count }
            }),
        ),
      ),
    ],
    errors: toErrors(learned),
  }
}

interface Choice extends Observation {
  readonly value: string | boolean
}

/** Proposes the one value that all observations are of. */
function proposeValue(path: string, current: string | boolean, choices: readonly Choice[]): Proposal {
  const found = choices.filter(({ count }) => count > 0)
  const evidence = found.map(({ seen, count }) => ({ seen, count }))
  const [first] = found
  if (first === undefined) return { path, current, result: 'none', evidence }
  if (found.some(({ value }) => value !== first.value))
    return { path, current, result: 'contradictory', evidence }
  if (first.value === current) return { path, current, result: 'keep', evidence }
  return { path, current, result: 'change', proposed: first.value, evidence }
}

/** `auto` where V2 itself answers by the request: generic clients only in the nested layout. */
function proposeLayout(learned: Learned, current: string): Proposal {
  const seen = (['flat', 'nested'] as const)
    .flatMap((layout) =>
      (['plain', 'generic'] as const).map((client) => ({
        layout,
        client,
        count: learned.get(`layout/${layout}/${client}`) ?? 0,
      })),
    )
    .filter(({ count }) => count > 0)
  const layouts = new Set(seen.map(({ layout }) => layout))
  const isByClient = seen.every(({ layout, client }) => (layout === 'nested') === (client === 'generic'))
  // `auto` that gives these clients what they got is right as it is.
  const isAuto = isByClient && (layouts.size > 1 || current === 'auto')
  const choices = seen.map(({ layout, client, count }) => ({
    value: isAuto ? 'auto' : layout,
    seen: `${layout} replies to ${client === 'generic' ? 'generic clients' : 'plain V2 clients'}`,
    count,
  }))
  const isFlat = !layouts.has('nested') && seen.some(({ client }) => client === 'generic')
  return { ...proposeValue('layout', current, choices), ...(isFlat && { note: NEEDS_AUTO }) }
}

/** In the flat layout a created record has no `Location`, as service.md 4.2 shows it. */
const NEEDS_AUTO =
  'generic clients that miss nested parts or Location there, such as Microsoft.OData.Client and the SAP Cloud SDK, need auto'

/** With `drop` the adapter discards marks: a single batch is not enough to propose it. */
const LEAST_DROPPED = 3

/** V2's empty reply to such a batch is the same whether it keeps the records or not: what V3 then shows counts. */
function proposeMismatch(learned: Learned, current: string): Proposal {
  const countOf = (outcome: string): number => learned.get(`mismatch/${outcome}`) ?? 0
  const proposal = proposeValue('quirks.mismatch', current, [
    // Parts are outcomes: V2 tried to apply the records.
    { value: 'post', seen: 'batches whose ids differ, answered with parts', count: countOf('parts') },
    { value: 'post', seen: 'batches whose ids differ and whose marks were recorded', count: countOf('kept') },
    {
      value: 'drop',
      seen: 'batches whose ids differ and whose marks were not recorded',
      count: countOf('dropped'),
    },
  ])
  if (proposal.proposed === 'drop' && countOf('dropped') < LEAST_DROPPED) {
    const { path, evidence } = proposal
    const note = `at least ${LEAST_DROPPED} are needed, since a batch of which V2 refused every record looks the same`
    return { path, current, result: 'none', evidence, note }
  }
  const empty = countOf('empty')
  if (proposal.result !== 'none' || empty === 0) return proposal
  const evidence = [{ seen: 'batches whose ids differ, answered without parts', count: empty }]
  const note = 'nothing shows whether V2 kept the records: read one of them on V2'
  return { ...proposal, evidence, note }
}

/** Only for codes that the adapter has a text of its own for: others come from V3 with theirs. */
function proposeMessages(
  learned: Learned,
  configured: LearnableSettings['errorMessages'],
): readonly Proposal[] {
  const own = new Map(defaultErrorMapping.map(({ to }) => [to.code, to.message]))
  const errors = toErrors(learned).filter(({ code }) => own.has(code))
  return [...new Set(errors.map(({ code }) => code))].map((code) =>
    proposeValue(
      `errorMessages.${code}`,
      configured[code] ?? own.get(code) ?? '',
      errors
        .filter((error) => error.code === code && error.message !== WITHHELD)
        .map(({ message, count }) => ({ value: message, seen: `“${message}”`, count })),
    ),
  )
}

function toErrors(learned: Learned): readonly LearnedError[] {
  return [...learned]
    .flatMap(([name, count]) => {
      const [, status, code, message] = /^error\/(\d{3})\/([^/]+)\/(.+)$/.exec(name) ?? []
      if (status === undefined || code === undefined || message === undefined) return []
      return [{ status: Number(status), code, message, count }]
    })
    .toSorted((one, other) => other.count - one.count)
}

/** The proposals as a patch of the configuration file, each line with the counts behind it; all else as comments. */
export function formatPatch(
  partner: string,
  { exchanges, unreadable, proposals, errors }: LearnedProposals,
): string {
  const changes = proposals.filter(({ result }) => result === 'change')
  const lines = [
    `# observed: ${counted(exchanges.batch, 'batch', 'batches')}, ${counted(exchanges.record, 'single record')}, ${counted(exchanges.read, 'read')}`,
    ...(unreadable > 0 ? [`# ${counted(unreadable, 'reply', 'replies')} could not be read`] : []),
    ...(changes.length > 0
      ? ['partners:', `  - id: ${partner}`, ...patchOf(changes)]
      : ['# nothing to change']),
    ...(['keep', 'contradictory', 'none'] as const).flatMap((result) =>
      proposals
        .filter((one) => one.result === result)
        .map((one) => `# ${one.path}: ${reasonOf(one)}${noteOf(one)}`),
    ),
    ...errors.map(({ status, code, message, count }) => `# error ${status} ${code}: ${message} (${count})`),
  ]
  return lines.join('\n')
}

/** Why a key is left as it is. */
function reasonOf({ result, current, evidence }: Proposal): string {
  const seen = toText(evidence)
  if (result === 'keep') return `${current} fits: ${seen}`
  if (result === 'contradictory') return `not proposed, the evidence is contradictory: ${seen}`
  return `not proposed, ${evidence.length === 0 ? 'nothing was seen of it' : seen}`
}

function patchOf(changes: readonly Proposal[]): readonly string[] {
  const lines: string[] = []
  let open = ''
  for (const one of changes) {
    const { path, proposed, evidence } = one
    const [first = '', second] = path.split('.')
    const section = second === undefined ? '' : first
    if (section !== open && section !== '') lines.push(`    ${section}:`)
    open = section
    lines.push(
      `${second === undefined ? '    ' : '      '}${second ?? first}: ${first === 'errorMessages' ? JSON.stringify(proposed) : String(proposed)} # ${toText(evidence)}${noteOf(one)}`,
    )
  }
  return lines
}

const counted = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`

const toText = (evidence: readonly Observation[]): string =>
  evidence.map(({ seen, count }) => `${count} × ${seen}`).join(', ')

const noteOf = ({ note }: Proposal): string => (note === undefined ? '' : `; ${note}`)
