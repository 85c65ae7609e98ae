import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { FileStage } from '../../rollout/index.ts'
import { beginSetting } from '../../rollout/begin-setting.ts'
import { lowered } from '../../rollout/lowered.ts'
import type { Stage, StageSetting } from '../../rollout/stage.ts'
import type { PartnerRollout, PendingChange, RolloutSnapshot } from '../../rollout/store/rollout-store.ts'
import { type FilePartner, filePartnersOf } from './open-target.ts'

/** The stage of a partner and where it comes from. */
export interface StageView {
  readonly partner: string
  /** That requests are decided by. Undefined: its row in the journal is not as it was written. */
  readonly setting: StageSetting | undefined
  /** `override`: the file lowers the stage of the journal, or its own. */
  readonly source: 'file' | 'store' | 'override'
  /** Without the override. */
  readonly stored: StageSetting | undefined
  readonly storedIn: 'file' | 'store'
  /** 0: that of the file. */
  readonly revision: number
  readonly sinceMs: number | undefined
  readonly by: string | undefined
  readonly reason: string | undefined
  readonly pending: PendingChange | undefined
  /** The stage that the file names and that does not count: two people take each step, or the partner began at a lower one. */
  readonly ignored: Stage | undefined
  /** Undefined: the file does not have this partner. */
  readonly file: FilePartner | undefined
}

/** What a partner would begin with that is in no file. */
const unlisted: FileStage = { stage: 'legacy', override: undefined, percent: 0, always: [], never: [] }

/** The views of all partners: those of the file in its order, then those that only the journal knows. */
export function viewStages(
  files: ReadonlyMap<string, FilePartner>,
  snapshot: RolloutSnapshot | undefined,
): readonly StageView[] {
  const known = [...(snapshot?.partners.keys() ?? []), ...(snapshot?.damaged ?? [])]
  const names = new Set([...files.keys(), ...known.sort()])
  return [...names].map((partner) => viewStage(partner, files.get(partner), snapshot))
}

/** The view of one partner; `snapshot` is undefined where stages are those of the file. */
export function viewStage(
  partner: string,
  file: FilePartner | undefined,
  snapshot: RolloutSnapshot | undefined,
): StageView {
  const fileStage = file?.fileStage ?? unlisted
  const known: Partial<PartnerRollout> = snapshot?.partners.get(partner) ?? {}
  const { state, pending } = known
  const isLost = snapshot !== undefined && snapshot.trail === undefined && state === undefined
  const isDamaged = isLost || snapshot?.damaged.has(partner) === true
  const begin = beginSetting(fileStage, snapshot?.begins.get(partner))
  const stored = isDamaged ? undefined : settingOf(state ?? begin)
  const setting = stored === undefined ? undefined : lowered(stored, fileStage)
  const storedIn = isDamaged || state !== undefined ? 'store' : 'file'
  const ignored = file !== undefined && file.own.stage !== begin.stage ? file.own.stage : undefined
  return {
    partner,
    setting,
    source: setting?.stage === stored?.stage ? storedIn : 'override',
    stored,
    storedIn,
    revision: state?.revision ?? 0,
    sinceMs: state?.sinceMs,
    by: state?.by,
    reason: state?.reason,
    pending,
    ignored: storedIn === 'file' ? ignored : undefined,
    file,
  }
}

/** The view of a partner that the file or the journal has. Error: `ADP_USAGE`. */
export function viewKnown(partner: string, config: Config, snapshot: RolloutSnapshot | undefined): StageView {
  const files = filePartnersOf(config)
  const isStored = snapshot?.partners.has(partner) === true || snapshot?.damaged.has(partner) === true
  if (isStored || files.has(partner)) return viewStage(partner, files.get(partner), snapshot)
  const known = [...files.keys()].join(', ')
  throw new AdapterError('ADP_USAGE', `The configuration has no partner ${partner}. It has: ${known}.`)
}

/** The share of the units that V3 serves. */
export function shareOf({ stage, percent }: Pick<StageSetting, 'stage' | 'percent'>): number {
  if (stage === 'canary') return percent
  return stage === 'v3' || stage === 'complete' ? 100 : 0
}

const settingOf = ({ stage, percent, always, never }: StageSetting): StageSetting => {
  return { stage, percent, always, never }
}
