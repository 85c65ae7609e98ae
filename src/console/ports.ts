import type { TrendDay } from '../compare/evidence/read-evidence.ts'
import type { RunDocument, StepAdvice } from '../compare/run-document.ts'
import type { ListedRun } from '../compare/run/read-runs.ts'
import type { Actor } from '../rollout/operators.ts'
import type { EntryDocument, PartnerDocument } from '../rollout/partner-document.ts'
import type { StageSetting, Step } from '../rollout/stage.ts'
import type { NotedAction } from '../rollout/store/audit-trail.ts'
import type { ConsoleData } from './data/port.ts'

export interface ConsolePorts {
  readonly data: ConsoleData
  readonly stages: StageDesk
  readonly comparison: ComparisonDesk
  /** Returns what the adapter would make of a recorded batch of a partner, by the function of `markbridge check`. */
  tryBatch(partner: string, file: Buffer): Promise<TriedBatch>
  /** Explains by which rules a record was translated, or returns `undefined` if there is no such record. */
  explain(batch: number, position: number, isRevealed: boolean): Promise<Explained | undefined>
  /** `undefined` if no sandbox runs beside the adapter; `setFaults` replaces its faults. */
  readonly sandbox:
    { read(): Promise<SandboxState>; setFaults(faults: readonly object[]): Promise<void> } | undefined
}

export interface ComparisonDesk {
  /** Returns the runs, newest first, and the files that are not runs. Rejects with `ADP_USAGE` if the folder cannot be read. */
  runs(): Promise<readonly ListedRun[]>
  /** Rejects with `ADP_USAGE` if there is no such run or its file does not contain one. */
  run(id: string): Promise<RunDocument>
  /** Returns the results of live comparison of one partner, or of all sorted by name, at their latest stage and share. */
  live(partner?: string): Promise<readonly LiveResult[]>
}

export interface LiveResult {
  readonly partner: string
  readonly document: RunDocument
  /** `undefined` if no advice is based on the document. */
  readonly advice: StepAdvice
  readonly trend: readonly TrendDay[]
}

export interface SandboxState {
  /** The marks that the sandbox has accepted, oldest first. */
  readonly effects: readonly Readonly<
    Record<'face' | 'learner' | 'event' | 'externalId', string> & { seq: number }
  >[]
  /** The active faults, as the control route of the sandbox returns them. */
  readonly faults: readonly unknown[]
  /** Ids to try; `from` and `to` are the bounds of the events' times. */
  readonly school: {
    readonly learners: readonly string[]
    readonly events: readonly string[]
    readonly codes: readonly { readonly id: string; readonly code: string }[]
    readonly from: string
    readonly to: string
  }
}

export interface TriedBatch {
  /** The size of the decompressed body. */
  readonly bytes: number
  /** False if the adapter would refuse the whole request. */
  readonly isSound: boolean
  /** True if the file is a body alone, so that offsets refer to the file. */
  readonly isBody: boolean
  readonly records: readonly TriedRecord[]
  readonly findings: readonly TriedFinding[]
  /** `undefined` if the file is not a request that the adapter would answer. */
  readonly reply: TriedReply | undefined
}

/** The bytes of the reply: `head`, the parts in their order, then `end`. */
export interface TriedReply {
  readonly head: string
  /** `ifAccepted` is the part of a record that V3 accepts, or `undefined` if the adapter refuses the record. */
  readonly parts: readonly { readonly ifAccepted: string | undefined; readonly otherwise: string }[]
  readonly end: string
  /** The placeholder in the parts for the id that V3 assigns. */
  readonly v3Id: string
}

export interface TriedRecord {
  /** The number of the part, from 1. */
  readonly part: number
  readonly contentId: string | undefined
  /** `undefined` if the adapter would refuse the record. */
  readonly v3: string | undefined
}

export interface TriedFinding {
  readonly severity: 'error' | 'warning' | 'note'
  readonly code: string
  readonly message: string
  readonly remedy: string
  readonly part?: number
  readonly offset?: number
}

export interface Explained {
  /** Notes on the body for V3, or why there is none, one sentence each. */
  readonly notes: readonly string[]
  readonly fields: readonly ExplainedField[]
  /** `undefined` if no part is stored. The members are those of its flat record or of its errors. */
  readonly reply: { readonly status: number; readonly fields: readonly ExplainedField[] } | undefined
}

/** A member of the body for V3, or of a part of the reply. */
export interface ExplainedField {
  readonly path: string
  /** The member of the V2 record or of V3's response that it comes from, or `undefined` if there is none. */
  readonly from: string | undefined
  readonly rule: string
  /** The value as JSON, or the form of a masked value in words. */
  readonly value: string
  readonly isMasked: boolean
}

/** The document of a partner, and what else the texts of the command line and the pages show. */
export interface PartnerFacts {
  readonly document: PartnerDocument
  /** Further notes on the stage, one sentence each. */
  readonly notes: readonly string[]
  /** The share and the lists from which a step to `canary` starts. */
  readonly canary: Omit<StageSetting, 'stage'>
  /** The figures that the advice is based on, one fact in each line. */
  readonly evidence: readonly string[]
  /** The alarm of the guards at this stage and share. */
  readonly guardAlarm: string | undefined
  /** How the audit trail of all stages is broken, as the end of a sentence, or `undefined` if the trail is whole. */
  readonly trailFault: string | undefined
  /** The differences of each day that live comparison found. */
  readonly trend: readonly TrendDay[]
}

/** The functions of `markbridge rollout`, which reject with the errors of the rollout store. */
export interface StageDesk {
  /** Describes the named partner, or all. Returns an empty list if neither the configuration nor the journal has the partner. */
  list(partner?: string): Promise<readonly PartnerFacts[]>
  /** Returns what `markbridge config print` shows, without secrets, or `undefined` if the file does not have the partner. */
  configuration(partner: string): string | undefined
  /**
   * Takes a step, or with `dryRun` reports what it would do. `text` and `json` are those of the command. `isDone` is true also if the step
   * waits for the approval of another operator.
   */
  take(
    actor: Actor,
    partner: string,
    step: Step,
  ): Promise<{ readonly isDone: boolean; readonly text: string; readonly json: unknown }>
  /** Returns the newest entry first. */
  history(filter: { readonly partner?: string; readonly limit: number }): Promise<readonly EntryDocument[]>
  /** Adds an action that changes no stage to the audit trail. */
  recordAction(action: NotedAction, by: string, what: string): Promise<void>
}
