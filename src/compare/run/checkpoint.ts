import { AdapterError } from '../../errors.ts'
import { isRunName } from './run-files.ts'
import type { RunPosition, Window } from './windows.ts'

/** How far a run has come, without any value of a record: all that `--resume` needs. */
export interface Checkpoint {
  readonly run: string
  /** ISO 8601. */
  readonly startedAt: string
  /** SHA-256 over the options: another selection of records cannot be added to this one. */
  readonly options: string
  /** Chooses the learners of `--sample`. */
  readonly sampleKey: string
  readonly marks: PhaseState
  readonly registrations: PhaseState
  /** As the tally writes itself. */
  readonly tally: unknown
}

/** How far one kind of records has come. */
export interface PhaseState {
  readonly position: RunPosition
  /** Windows that failed; they are read again. */
  readonly failed: readonly Window[]
}

const SCHEMA = 1

/** The text of a checkpoint. */
export function writeCheckpoint(checkpoint: Checkpoint): string {
  return JSON.stringify({ schema: SCHEMA, ...checkpoint })
}

/** Reads a checkpoint. Error: `ADP_USAGE` for a text that is none of this version. */
export function readCheckpoint(text: string): Checkpoint {
  const value = parse(text)
  if (value?.['schema'] !== SCHEMA || !isCheckpoint(value))
    throw new AdapterError(
      'ADP_USAGE',
      'The checkpoint is damaged, or of another version. Begin the run again without --resume.',
    )
  return value
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isCheckpoint(
  value: Readonly<Record<string, unknown>>,
): value is Readonly<Record<string, unknown>> & Checkpoint {
  const { run, startedAt, options, sampleKey, marks, registrations } = value
  return (
    [run, startedAt, options, sampleKey].every((text) => typeof text === 'string') &&
    isRunName(String(run)) &&
    isPhase(marks) &&
    isPhase(registrations)
  )
}

function isPhase(value: unknown): boolean {
  if (!isObject(value)) return false
  const { position, failed } = value
  return (
    hasCounts(position, ['list', 'fromMs', 'days']) &&
    Array.isArray(failed) &&
    failed.every((window) => hasCounts(window, ['list', 'fromMs', 'toMs']))
  )
}

function hasCounts(value: unknown, names: readonly string[]): boolean {
  return isObject(value) && names.every((name) => isCount(value[name]))
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
