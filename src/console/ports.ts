import type { TrendDay } from '../compare/evidence/read-evidence.ts'
import type { RunDocument, StepAdvice } from '../compare/run-document.ts'
import type { ListedRun, UnfinishedRun } from '../compare/run/read-runs.ts'
import type { Actor } from '../rollout/operators.ts'
import type { Stage, StageSetting } from '../rollout/stage.ts'
import type { AuditEntry, NotedAction } from '../rollout/store/audit-trail.ts'
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
  unfinished(): Promise<readonly UnfinishedRun[]>
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

/** The functions of `markbridge rollout`, which reject with the errors of the rollout store. */
export interface StageDesk {
  list(): Promise<readonly PartnerStage[]>
  /** Returns `undefined` if neither the configuration nor the journal has the partner. */
  show(partner: string): Promise<PartnerDetails | undefined>
  /** Takes a step, or with `dryRun` reports what it would do. The result also says whether the person may take the step. */
  change(actor: Actor, partner: string, step: Step): Promise<StepResult>
  /** Returns the newest entry first. */
  history(filter: { readonly partner?: string; readonly limit: number }): Promise<readonly AuditEntry[]>
  /** Adds an action that changes no stage to the audit trail. */
  recordAction(action: NotedAction, by: string, what: string): Promise<void>
}

type Share = { readonly [Name in keyof Omit<StageSetting, 'stage'>]?: StageSetting[Name] | undefined }

export type Step =
  | (Share & {
      readonly kind: 'set'
      readonly stage: Stage
      readonly despiteHold: boolean
      readonly despiteAdvice: boolean
      readonly dryRun: boolean
      readonly reason: string
    })
  | { readonly kind: 'back'; readonly reason: string }
  | {
      readonly kind: 'approve'
      readonly despiteHold: boolean
      readonly despiteAdvice: boolean
      readonly reason: string
    }

/** The text of the command, and its JSON document for programs. */
export interface StepResult {
  /** True also if the step waits for the approval of another operator. */
  readonly isDone: boolean
  readonly text: string
  readonly json: unknown
}

export interface PartnerStage {
  readonly partner: string
  readonly stage: Stage
  /** `undefined` if the stage is damaged. */
  readonly percent: number | undefined
  readonly source: 'file' | 'store'
  readonly revision: number
  readonly sinceMs: number | undefined
  readonly by: string | undefined
  readonly reason: string | undefined
  /** Further notes on the stage, one sentence each. */
  readonly notes: readonly string[]
  readonly pending:
    { readonly text: string; readonly by: string; readonly needsApproval: boolean } | undefined
  /** `undefined` if the partner is at its last stage. */
  readonly next: Stage | undefined
  readonly advice: { readonly verdict: string; readonly missing: readonly string[] }
  /** The alarm of the guards at this stage and share. */
  readonly guardAlarm: string | undefined
  /** How the audit trail of all stages is broken, as the end of a sentence. Absent if the trail is whole. */
  readonly trailFault?: string | undefined
  readonly trend: readonly TrendDay[]
}

export interface PartnerDetails extends PartnerStage {
  /** The share and the lists in the journal or the file, from which a step starts. */
  readonly canary: Omit<StageSetting, 'stage'>
  /** The figures that the advice is based on, one fact in each line. */
  readonly evidence: readonly string[]
  /** The configuration as `markbridge config print` shows it, without secrets, or `undefined` if the file does not have the partner. */
  readonly configuration: string | undefined
}
