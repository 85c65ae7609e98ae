import { AdapterError } from '../../errors.ts'
import type { LogEvidence } from './change-evidence.ts'
import {
  type Evidence,
  type GuardAct,
  guardActions,
  guardTests,
  type KindEvidence,
  type TestEvidence,
  type TrialCounts,
  type UnitsEvidence,
} from './evidence.ts'
import { type GuardKindName, isGuardKind } from './guard-kinds.ts'

const VERSION = 1
/** Decimals of a logarithm; rounded down, so that evidence never grows by being stored. */
const PRECISION = 1_000

/** Formats evidence as the text that is stored: JSON of bounded size. */
export function formatEvidence({ revision, controlSeenMs, kinds, lastAct }: Evidence): string {
  const rounded = (logs: LogEvidence): number[] => logs.map((log) => Math.floor(log * PRECISION) / PRECISION)
  const test = ({ without, logs, ...counts }: TestEvidence): object => ({
    ...counts,
    logs: rounded(logs),
    without: [...without].map(([unit, rest]) => [unit, rounded(rest)]),
  })
  const written = [...kinds].map(([kind, { control, alone, units, reverse, counted }]) => [
    kind,
    {
      control: test(control),
      alone: test(alone),
      units: {
        ...units,
        units: [...units.units].map(([unit, { rank, logs }]) => [unit, rank, rounded(logs)]),
      },
      reverse,
      counted,
    },
  ])
  return JSON.stringify({ version: VERSION, revision, controlSeenMs, kinds: written, lastAct })
}

/**
 * Parses stored evidence. Kinds that this version does not know are left out. Errors: `ADP_JOURNAL_DAMAGED` for anything that `formatEvidence`
 * did not write; evidence that cannot be read must not begin anew unnoticed.
 */
export function parseEvidence(text: string): Evidence {
  const note = objectOf(parseJson(text))
  if (note['version'] !== VERSION) throw damaged('its version is not known')
  const kinds = listOf(note['kinds']).flatMap((entry): [GuardKindName, KindEvidence][] => {
    const [kind, known] = listOf(entry)
    return isGuardKind(textOf(kind)) ? [[kindOf(kind), kindEvidenceOf(known)]] : []
  })
  return {
    revision: numberOf(note['revision']),
    controlSeenMs: note['controlSeenMs'] === undefined ? undefined : numberOf(note['controlSeenMs']),
    kinds: new Map(kinds),
    lastAct: note['lastAct'] === undefined ? undefined : actOf(note['lastAct']),
  }
}

function kindEvidenceOf(value: unknown): KindEvidence {
  const known = objectOf(value)
  return {
    control: testOf(known['control']),
    alone: testOf(known['alone']),
    units: unitsOf(known['units']),
    reverse: numberOf(known['reverse']),
    counted: countsOf(known['counted']),
  }
}

function testOf(value: unknown): TestEvidence {
  const test = objectOf(value)
  const without = listOf(test['without']).map((entry) => {
    const [unit, logs] = listOf(entry)
    return [textOf(unit), logsOf(logs)] as const
  })
  return {
    episode: countOf(test['episode'], 1),
    windows: countOf(test['windows'], 0),
    logs: logsOf(test['logs']),
    without: new Map(without),
  }
}

function unitsOf(value: unknown): UnitsEvidence {
  const known = objectOf(value)
  const units = listOf(known['units']).map((entry) => {
    const [unit, rank, logs] = listOf(entry)
    return [textOf(unit), { rank: countOf(rank, 1), logs: logsOf(logs) }] as const
  })
  return {
    episode: countOf(known['episode'], 1),
    windows: countOf(known['windows'], 0),
    ranks: countOf(known['ranks'], 0),
    units: new Map(units),
  }
}

function countsOf(value: unknown): TrialCounts {
  const counts = objectOf(value)
  const [v3, v3Bad, v2, v2Bad] = [counts['v3'], counts['v3Bad'], counts['v2'], counts['v2Bad']]
  return { v3: countOf(v3, 0), v3Bad: countOf(v3Bad, 0), v2: countOf(v2, 0), v2Bad: countOf(v2Bad, 0) }
}

function actOf(value: unknown): GuardAct {
  const { action, test, kind, atMs, unit } = objectOf(value)
  const [knownAction, knownTest] = [
    guardActions.find((known) => known === action),
    guardTests.find((known) => known === test),
  ]
  if (knownAction === undefined || knownTest === undefined) throw damaged('its last action is not known')
  const act = { action: knownAction, atMs: numberOf(atMs), kind: kindOf(kind), test: knownTest }
  return unit === undefined ? act : { ...act, unit: textOf(unit) }
}

function kindOf(value: unknown): GuardKindName {
  const kind = textOf(value)
  if (!isGuardKind(kind)) throw damaged('a kind is not known')
  return kind
}

function logsOf(value: unknown): LogEvidence {
  return listOf(value).map(numberOf)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw damaged('it is not JSON', error)
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw damaged('an object is missing')
  return { ...value }
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw damaged('a list is missing')
  return value
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw damaged('a text is missing')
  return value
}

function numberOf(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw damaged('a number is missing')
  return value
}

function countOf(value: unknown, least: number): number {
  const count = numberOf(value)
  if (!Number.isSafeInteger(count) || count < least) throw damaged('a count is missing')
  return count
}

function damaged(reason: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The stored evidence of the guards cannot be read: ${reason}.`,
    { cause },
  )
}
