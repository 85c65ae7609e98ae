import type { LostInstance } from '../../journal/index.ts'
import type { StageSetting } from '../stage.ts'

/** The stage of a partner as the store has it. */
export interface StageState extends StageSetting {
  readonly partner: string
  /** Grows with every change; one that was withdrawn leaves a gap. */
  readonly revision: number
  /** Since when the partner is at this stage; a change of the share or of the lists does not count. */
  readonly sinceMs: number
  readonly by: string
  readonly reason: string
}

/** A change that is not committed yet. */
export interface PendingChange extends StageSetting {
  /** That it will have. No other change ever has it, so an acknowledgement of it is of no other. */
  readonly revision: number
  readonly by: string
  readonly reason: string
  /** By the clock of the database. */
  readonly expiresMs: number
  /** True: it waits for another operator, and instances take no notice of it until then. */
  readonly needsApproval: boolean
}

/** What the store knows of a partner. */
export interface PartnerRollout {
  /** Undefined: that of the file counts, until the first change is committed. */
  readonly state: StageState | undefined
  /** Undefined: there is none, and none can be committed any longer. */
  readonly pending: PendingChange | undefined
}

/** What an instance has last said of a partner. */
export interface Acknowledgement {
  readonly partner: string
  /** The revision that it serves by; 0: the stage of its file. */
  readonly revision: number
  /** The pending change that it holds writes for; undefined: none. */
  readonly pendingRevision: number | undefined
  /**
   * Writes under way there. With a pending change: those that hold it up, which began on the side that their unit leaves.
   * The change is committed when both are 0 on every live instance.
   */
  readonly writesV2: number
  readonly writesV3: number
}

/** How far an instance has seen the audit trail come. One that does not go on from there is an old copy or was forged. */
export interface KnownTrail {
  /** Of the key of its MACs; empty: the journal had none. */
  readonly keyName: string
  readonly entries: number
  /** Of the last row. */
  readonly mac: string
  /** 0: never. */
  readonly repairedMs: number
  /** Of partners whose stage was changed. */
  readonly revisions: readonly (readonly [partner: string, revision: number])[]
}

/** All stages at one moment. Times are of the database. */
export interface RolloutSnapshot {
  readonly nowMs: number
  /** Undefined: the trail is damaged, so that no stage moves forward, and a partner without a row has no stage. */
  readonly trail: KnownTrail | undefined
  /** A partner that is missing here begins with the stage of the file. */
  readonly partners: ReadonlyMap<string, PartnerRollout>
  /** Where partners first began by a file; a file that goes beyond it does not count (`beginSetting`). */
  readonly begins: ReadonlyMap<string, StageSetting>
  /** Partners whose row is not as it was written, or is gone: their stage is not known, and the file does not count. */
  readonly damaged: ReadonlySet<string>
  /** Records of V3 that are open or due, by partner; a partner without any is left out. */
  readonly unsettled: ReadonlyMap<string, number>
  /**
   * Numbers of the instances whose lease has not ended. An instance that is not among them is not waited for when a change is committed:
   * for it this snapshot says nothing of what comes next.
   */
  readonly liveInstances: readonly number[]
  /** Those of live instances. */
  readonly acknowledgements: readonly (Acknowledgement & { readonly instance: number })[]
}

/** A change of the stage of one partner. */
export interface Change {
  readonly partner: string
  /** That the caller has decided by; 0: the store does not know the partner; `damaged`: its row is. */
  readonly expectedRevision: number | 'damaged'
  /** What the caller has decided by: the stage of the file where the store knows none. */
  readonly from: StageSetting
  readonly to: StageSetting
  readonly by: string
  readonly reason: string
}

/** A change that waits for its instances, or for an operator. */
export interface ProposedChange extends Change {
  /** How long it may wait; a commit after that is refused. */
  readonly forMs: number
  readonly needsApproval: boolean
  /** Time without a batch that may have been relayed unrecorded, and without a lost instance, before the commit; 0: no unit goes to V3. */
  readonly quietMs: number
}

/** A live instance that holds a change up. */
export interface Undrained {
  readonly instance: number
  readonly host: string
  readonly pid: number
  /** Writes under way on the side that their unit leaves; undefined: it has not acknowledged the change. */
  readonly writes: number | undefined
}

/** `stale`: the revision is not the expected one any longer; `forward`: the change moves units to V3, so it has to be proposed. */
export type ApplyResult =
  { readonly kind: 'applied'; readonly revision: number } | { readonly kind: 'stale' | 'forward' }

/** Instances that were lost may still send V2 writes of the units that move. */
export interface HeldByLost {
  readonly kind: 'lost'
  readonly instances: readonly LostInstance[]
}

/** The journal does not know all batches of the last `quietMs` yet. */
export interface Early {
  readonly kind: 'early'
  readonly untilMs: number
  readonly nowMs: number
}

/** `pending`: another change waits. */
export type ProposeResult =
  | { readonly kind: 'proposed'; readonly revision: number }
  | { readonly kind: 'stale' }
  | { readonly kind: 'pending'; readonly pending: PendingChange }
  | HeldByLost
  | Early

/** `own`: the operator who has proposed a change cannot approve it; `gone`: it was withdrawn, dropped, or has expired. */
export type ApproveResult = { readonly kind: 'approved' | 'own' | 'gone' }

export type CommitResult =
  | { readonly kind: 'committed' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'undrained'; readonly instances: readonly Undrained[] }
  | HeldByLost
  | Early

/** `live`: the instance holds its lease; `unknown`: no instance of this number is lost. */
export type DismissResult =
  ({ readonly kind: 'dismissed' } & LostInstance) | { readonly kind: 'live' | 'unknown' }

/** What a row of the audit trail is about. `hold`: a guard stops a partner where it is; `dismiss`: a lost instance is off; `key`: the journal got keys; `repair`: its end was damaged. */
export type AuditAction =
  | 'set'
  | 'back'
  | 'guard'
  | 'propose'
  | 'approve'
  | 'commit'
  | 'withdraw'
  | 'expire'
  | 'hold'
  | 'dismiss'
  | 'key'
  | 'repair'

/** A row of the audit trail. */
export interface AuditEntry {
  /** 1 for the oldest, without gaps. */
  readonly entry: number
  readonly atMs: number
  readonly by: string
  /** Empty for rows about the trail itself. */
  readonly partner: string
  readonly action: AuditAction
  readonly from: StageSetting | undefined
  readonly to: StageSetting | undefined
  readonly revision: number
  readonly reason: string
}

/** What the check of the audit trail has found. */
export interface Verified {
  readonly entries: number
  /** False: the journal has no keys, so a user who may write the database could have written a trail that fits. */
  readonly keyed: boolean
  /** With keys: the first row that needs one; those before were written without. */
  readonly keyedFrom: number | undefined
  /** MAC of the last row; empty where there is none. */
  readonly head: string
  /** Undefined: each row is as it was written, and none is missing. */
  readonly broken: { readonly entry: number; readonly what: string } | undefined
}

/** What is known of batches that were relayed to V2 without a record in the journal. Times are of the database. */
export interface Unrecorded {
  readonly nowMs: number
  /** The last one that an instance has noted. */
  readonly notedMs: number | undefined
  /** When an instance was last found killed: it may have relayed some until then, and noted none. */
  readonly killedMs: number | undefined
  /** When an instance was last found not to renew its lease: it may relay some after that, as long as it does without the journal. */
  readonly lostMs: number | undefined
}

/**
 * Where the stages of partners live: in the database of the journal, shared by all instances and the commands. Every change is a
 * compare-and-set on the revision, and its row of the audit trail is written in the same transaction. Errors: `ADP_JOURNAL_UNAVAILABLE`,
 * `ADP_JOURNAL_DAMAGED`.
 */
export interface RolloutStore {
  /**
   * One consistent read, cheap enough for every instance twice a second. Ends what has expired. What contradicts `known` is damaged; with
   * keys it is marked so in the database, for all others.
   */
  snapshot(known?: KnownTrail): Promise<RolloutSnapshot>
  /** Changes a stage at once, and drops a pending change; never forward. With `damaged` as the expected revision this is what repairs a row. */
  apply(change: Change, action: 'set' | 'back' | 'guard'): Promise<ApplyResult>
  /** Makes a change known that is to be committed once all live instances have acknowledged it. */
  propose(change: ProposedChange): Promise<ProposeResult>
  /** Lets a change of another operator go on, for `forMs` from now. */
  approve(
    partner: string,
    revision: number,
    approval: { readonly by: string; readonly reason: string; readonly forMs: number },
  ): Promise<ApproveResult>
  /** Commits a pending change, if it has not expired and every live instance has acknowledged it without writes under way. */
  commit(partner: string, revision: number): Promise<CommitResult>
  /** Does nothing where the change is gone already. */
  withdraw(partner: string, revision: number, by: string, reason: string): Promise<void>
  /** Keeps what an instance says of partners, in place of what it said of them before. */
  acknowledge(instance: number, rows: readonly Acknowledgement[]): Promise<void>
  /** Removes what an instance has said, at its clean end. */
  leave(instance: number): Promise<void>
  /**
   * Keeps where a partner begins by the file, the first time; later calls change nothing. What V2 served before that is not known to the
   * journal, so it also counts as a batch that was relayed unrecorded.
   */
  begin(partner: string, setting: StageSetting): Promise<void>
  /** Notes that a batch was relayed to V2 `agoMs` ago which the journal does not know. */
  noteUnrecorded(partner: string, agoMs: number): Promise<void>
  unrecorded(partner: string): Promise<Unrecorded>
  /** The instances that were lost and have not come back: cut off, they serve a kept `legacy` without an end. */
  lost(): Promise<readonly LostInstance[]>
  /** Records in the audit trail that an operator declares a lost instance off; until now it may have relayed writes unrecorded. */
  dismiss(instance: number, by: string, reason: string): Promise<DismissResult>
  /** Adds a row to the audit trail that changes no stage. */
  note(partner: string, action: 'hold', by: string, reason: string): Promise<void>
  /** Rows of the audit trail, oldest first. */
  history(filter: {
    readonly partner?: string | undefined
    readonly limit?: number | undefined
  }): Promise<readonly AuditEntry[]>
  /** Checks the audit trail, its end, that the stages are what its last rows say, and that all goes on from what is known. */
  verify(known?: KnownTrail): Promise<Verified>
  /** The MAC of a row of the audit trail; undefined: there is none. */
  macOf(entry: number): Promise<string | undefined>
  /** Text that guards keep under a name; undefined: none. */
  readText(name: string): Promise<string | undefined>
  /** Replaces the text by what `update` makes of it; two at once come one after the other. `update` may run again. */
  updateText(name: string, update: (text: string | undefined) => string): Promise<string>
}
