import type { TrendDay } from '../compare/evidence/read-evidence.ts'
import type { RunDocument, StepAdvice } from '../compare/run-document.ts'
import type { ListedRun, UnfinishedRun } from '../compare/run/read-runs.ts'
import type { Actor } from '../rollout/operators.ts'
import type { Stage, StageSetting } from '../rollout/stage.ts'
import type { AuditEntry, NotedAction } from '../rollout/store/audit-trail.ts'
import type { ConsoleData } from './data/port.ts'

/** What the console needs of the adapter; each part is handed in. */
export interface ConsolePorts {
  readonly data: ConsoleData
  readonly stages: StageDesk
  readonly comparison: ComparisonDesk
  /** What would become of a recorded batch of a partner: the function of `markbridge check`. */
  tryBatch(partner: string, file: Buffer): Promise<TriedBatch>
  /** Which rule made what of a record; undefined: there is no such record. */
  explain(batch: number, position: number, isRevealed: boolean): Promise<Explained | undefined>
  /** The stand-in service; `setFaults` replaces its faults. `undefined` if none runs beside the adapter. */
  readonly sandbox:
    { read(): Promise<SandboxState>; setFaults(faults: readonly object[]): Promise<void> } | undefined
}

/** What comparisons have found, by the functions of `markbridge compare`. */
export interface ComparisonDesk {
  /** The runs of the folder, the newest first, and the files that are none. Error: `ADP_USAGE` for a folder that cannot be read. */
  runs(): Promise<readonly ListedRun[]>
  /** Runs that have not ended. */
  unfinished(): Promise<readonly UnfinishedRun[]>
  /** A run of the folder by its id. Error: `ADP_USAGE` where there is none, or no run in its file. */
  run(id: string): Promise<RunDocument>
  /** What live comparison has found of one partner or of each by name, at its latest stage and share. */
  live(partner?: string): Promise<readonly LiveResult[]>
}

/** What live comparison has found of a partner. */
export interface LiveResult {
  readonly partner: string
  readonly document: RunDocument
  /** That is judged by the document; undefined where none is. */
  readonly advice: StepAdvice
  readonly trend: readonly TrendDay[]
}

export interface SandboxState {
  /** What it has accepted, oldest first. */
  readonly effects: readonly Readonly<
    Record<'face' | 'learner' | 'event' | 'externalId', string> & { seq: number }
  >[]
  /** The faults that were put, as its control route shows them. */
  readonly faults: readonly unknown[]
  /** Ids to try; `from` and `to` are the weeks that the events are in. */
  readonly school: {
    readonly learners: readonly string[]
    readonly events: readonly string[]
    readonly codes: readonly { readonly id: string; readonly code: string }[]
    readonly from: string
    readonly to: string
  }
}

/** A recorded batch that was tried. */
export interface TriedBatch {
  /** Of the body, decompressed. */
  readonly bytes: number
  /** False: the whole request would be refused. */
  readonly isSound: boolean
  /** The file is the body alone, so that offsets are those of the file. */
  readonly isBody: boolean
  readonly records: readonly TriedRecord[]
  readonly findings: readonly TriedFinding[]
  /** Undefined: the file is no request that the adapter would answer. */
  readonly reply: TriedReply | undefined
}

/** The reply that the batch would get, as its bytes are: `head`, the parts in their order, `end`. */
export interface TriedReply {
  readonly head: string
  /** `ifAccepted`: the part of a record that V3 takes; undefined: the adapter refuses the record. `otherwise`: where V3 refuses it, or the adapter. */
  readonly parts: readonly { readonly ifAccepted: string | undefined; readonly otherwise: string }[]
  readonly end: string
  /** What stands in the parts for the id that V3 assigns. */
  readonly v3Id: string
}

export interface TriedRecord {
  /** From 1. */
  readonly part: number
  readonly contentId: string | undefined
  /** The body that V3 would get; undefined: the record would be refused. */
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

/** What became of a record on its way to V3 and back. */
export interface Explained {
  /** What is to be known of the body for V3, or why there is none, as sentences. */
  readonly notes: readonly string[]
  /** The members of that body. */
  readonly fields: readonly ExplainedField[]
  /** The part of the reply that the journal keeps, with the members of the flat record or of each error; undefined: none. */
  readonly reply: { readonly status: number; readonly fields: readonly ExplainedField[] } | undefined
}

/** A member of the body for V3, or of a part of the reply. */
export interface ExplainedField {
  readonly path: string
  /** The member of the V2 record, or of V3's answer, that it was made of; undefined: none. */
  readonly from: string | undefined
  readonly rule: string
  /** As JSON; of a value that is masked, its form in words. */
  readonly value: string
  readonly isMasked: boolean
}

/** The stages of partners, by the functions of `markbridge rollout`. Errors: those of the rollout store. */
export interface StageDesk {
  list(): Promise<readonly PartnerStage[]>
  /** Undefined: neither the configuration nor the journal has the partner. */
  show(partner: string): Promise<PartnerDetails | undefined>
  /** Takes a step, or says with `dryRun` what it would do. Whether the actor may is part of the answer. */
  change(actor: Actor, partner: string, step: Step): Promise<StepResult>
  /** Rows of the audit trail, newest first. */
  history(filter: { readonly partner?: string; readonly limit: number }): Promise<readonly AuditEntry[]>
  /** Adds to the audit trail what an operator did that changes no stage. */
  note(action: NotedAction, by: string, what: string): Promise<void>
}

/** What a step to canary may change. */
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

/** What became of a step: the answer of the command in words and, for programs, as its document. */
export interface StepResult {
  /** True, too, where it waits for the approval of another operator. */
  readonly isDone: boolean
  readonly text: string
  readonly json: unknown
}

/** The stage of a partner with the advice on its next step. */
export interface PartnerStage {
  readonly partner: string
  readonly stage: Stage | 'damaged'
  /** Percentage of the units that V3 serves; undefined: damaged. */
  readonly percent: number | undefined
  readonly source: 'file' | 'store'
  readonly revision: number
  readonly sinceMs: number | undefined
  readonly by: string | undefined
  readonly reason: string | undefined
  /** What else is to be known of it, as sentences. */
  readonly notes: readonly string[]
  readonly pending:
    { readonly text: string; readonly by: string; readonly needsApproval: boolean } | undefined
  /** Undefined: it is at its last stage, or its stage is damaged. */
  readonly next: Stage | undefined
  readonly advice: { readonly verdict: string; readonly missing: readonly string[] }
  /** What the guards have found at this stage and share; undefined: nothing. */
  readonly guardAlarm: string | undefined
  /** What live comparison found day by day; empty: nothing yet. */
  readonly trend: readonly TrendDay[]
}

export interface PartnerDetails extends PartnerStage {
  /** The setting of the journal or the file, which a step starts from. */
  readonly canary: Omit<StageSetting, 'stage'>
  /** What the advice was judged by, one fact a line. */
  readonly evidence: readonly string[]
  /** As `markbridge config print` shows it: without secrets. Undefined: the file does not have it. */
  readonly configuration: string | undefined
}
