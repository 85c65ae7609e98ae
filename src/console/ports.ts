import type { TrendDay } from '../compare/evidence/read-evidence.ts'
import type { RunDocument, StepAdvice } from '../compare/run-document.ts'
import type { ListedRun } from '../compare/run/read-runs.ts'
import type { StepCondition } from '../rollout/condition.ts'
import type { Actor } from '../rollout/operators.ts'
import type { EntryDocument, PartnerDocument } from '../rollout/partner-document.ts'
import type { StageSetting, Step } from '../rollout/stage.ts'
import type { NotedAction } from '../rollout/store/audit-trail.ts'
import type { ConsoleData } from './data/port.ts'

export interface ConsolePorts {
  readonly data: ConsoleData
  /** Returns the state of the adapter, or `undefined` if the adapter runs in other processes. */
  readonly health: (() => InstanceHealth | undefined) | undefined
  readonly stages: StageDesk
  readonly comparison: ComparisonDesk
  /** Decodes, translates and answers a recorded batch of a partner as the adapter would, with the code of `markbridge check`. */
  tryBatch(partner: string, file: Buffer): Promise<TriedBatch>
  /** Explains the rules by which a record was translated, or returns `undefined` if there is no such record. */
  explain(batch: number, position: number, isRevealed: boolean): Promise<Explained | undefined>
  /** The sandbox beside the adapter, or `undefined` if no sandbox runs. `setFaults` replaces all faults of the sandbox. */
  readonly sandbox:
    | { readFaults(): Promise<readonly unknown[]>; setFaults(faults: readonly object[]): Promise<void> }
    | undefined
}

/** The state of the adapter in this process. */
export interface InstanceHealth {
  readonly journal: 'available' | 'unavailable' | 'damaged'
  /** The time in milliseconds since the adapter read the stages, or `undefined` if it never read them. */
  readonly stagesAgeMs: number | undefined
}

export interface ComparisonDesk {
  /** Returns the runs, newest first, and the files that are not runs. Rejects with `ADP_USAGE` if the folder cannot be read. */
  runs(): Promise<readonly ListedRun[]>
  /** Reads a run. Rejects with `ADP_USAGE` if there is no such run or its file is not a run document. */
  run(id: string): Promise<RunDocument>
  /** Returns the live results of one partner, or of all partners by name. Each result is for the latest compared stage and share. */
  live(partner?: string): Promise<readonly LiveResult[]>
}

export interface LiveResult {
  readonly partner: string
  readonly document: RunDocument
  /** The advice on the next step, or `undefined` if no advice is based on the document. */
  readonly advice: StepAdvice
  /** The verdict of the advice on the next step of the partner, or `undefined` if the partner has no next step. */
  readonly verdict: PartnerDocument['advice']['verdict'] | undefined
  readonly trend: readonly TrendDay[]
}

export interface TriedBatch {
  /** The size of the decompressed body in bytes. */
  readonly bytes: number
  readonly isSound: boolean
  /** True if the file is a body alone, so that offsets refer to the file. */
  readonly isBody: boolean
  readonly records: readonly TriedRecord[]
  readonly findings: readonly TriedFinding[]
  /** The reply, or `undefined` if the file is not a request that the adapter would answer. */
  readonly reply: TriedReply | undefined
}

/** The text of the reply, which consists of `head`, the parts in their order, and `end`. */
export interface TriedReply {
  readonly head: string
  /**
   * The possible parts of each record. The reply contains `ifAccepted` if V3 accepts the record, and `otherwise` if not. `ifAccepted` is
   * `undefined` if the adapter refuses the record.
   */
  readonly parts: readonly { readonly ifAccepted: string | undefined; readonly otherwise: string }[]
  readonly end: string
  /** The placeholder in the parts for the id that V3 assigns. */
  readonly v3Id: string
}

export interface TriedRecord {
  readonly part: number
  readonly contentId: string | undefined
  /** The members of the V2 record as JSON, or `undefined` if the record cannot be read. */
  readonly v2: string | undefined
  /** The body for V3, or `undefined` if the adapter would refuse the record. */
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
  /** Notes on the body for V3, or the reason why there is no body. Each note is one sentence. */
  readonly notes: readonly string[]
  readonly fields: readonly ExplainedField[]
  /** The stored part of the reply, or `undefined` if no part is stored. `fields` are the members of its flat record or of its errors. */
  readonly reply: { readonly status: number; readonly fields: readonly ExplainedField[] } | undefined
}

export interface ExplainedField {
  readonly path: string
  /** The source of the member in the V2 record or in the response of V3, or `undefined` if the member has no source. */
  readonly from: string | undefined
  readonly rule: string
  /** The value as JSON, or the form of a masked value in words. */
  readonly value: string
  readonly isMasked: boolean
}

/** The document of a partner, with further facts that the command line and the pages show. */
export interface PartnerFacts {
  readonly document: PartnerDocument
  readonly notes: readonly string[]
  /** The share and the lists from which a step to `canary` starts. */
  readonly canary: Omit<StageSetting, 'stage'>
  /** The setting after the step that the advice is about, or `undefined` at the last stage. */
  readonly next: Pick<StageSetting, 'stage' | 'percent'> | undefined
  /** The conditions of the step that the advice is about. */
  readonly conditions: readonly StepCondition[]
  /** The counts of the guards at this stage and share, as text, or `undefined` at a stage without guards. */
  readonly guard: string | undefined
  /** The alarm of the guards at this stage and share, or `undefined` if the guards raise no alarm. */
  readonly guardAlarm: string | undefined
  /** The fault of the audit trail of all stages, as the end of a sentence, or `undefined` if the trail is whole. */
  readonly trailFault: string | undefined
}

/** The functions of `markbridge rollout`, which reject with the errors of the rollout store. */
export interface StageDesk {
  /** Describes the named partner, or all partners. Returns an empty list if neither the configuration nor the journal has the partner. */
  list(partner?: string): Promise<readonly PartnerFacts[]>
  /** Returns the settings that `markbridge config print` shows, without secrets, or `undefined` if the file lacks the partner. */
  configuration(partner: string): string | undefined
  /**
   * Takes a step, or with `dryRun` reports what the step would do. `text` and `json` are the output of the command. `isDone` is also true
   * if the step waits for the approval of another operator.
   */
  take(
    actor: Actor,
    partner: string,
    step: Step,
  ): Promise<{ readonly isDone: boolean; readonly text: string; readonly json: unknown }>
  /** Says which side serves a school, as `rollout show --school` does. Rejects with `ADP_USAGE` if `school` does not name exactly one school. */
  sideOf(partner: string, school: string): Promise<{ readonly text: string }>
  /** Returns the entries of the audit trail, newest first. */
  history(filter: { readonly partner?: string; readonly limit: number }): Promise<readonly EntryDocument[]>
  /** Adds an action that changes no stage to the audit trail. */
  recordAction(action: NotedAction, by: string, what: string): Promise<void>
}
