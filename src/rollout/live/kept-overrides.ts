import type { StagedPartner } from '../live-stages.ts'
import { lowered } from '../lowered.ts'
import { placeOf, type Stage } from '../stage.ts'
import type { RevisedSetting } from './view.ts'

/** An override that has decided a write, until the store follows it: without that, the stage of the store would count again. */
export interface KeptOverride {
  readonly partner: string
  readonly stage: Stage
  /** Of the stage that it lowers; undefined: that was not known. */
  readonly revision?: number | undefined
}

/** The overrides of this instance that the store has not followed yet, also after they were taken out of the file. */
export interface KeptOverrides {
  /** The partner with the lower one of both overrides: that of its file, and the kept one. */
  over(partner: StagedPartner): StagedPartner
  /** An override has decided a write of the partner. */
  note(partner: StagedPartner, setting: RevisedSetting | undefined): void
  /** Drops those that the store has followed, and those whose stage was changed since: what was set later counts. */
  observe(settings: ReadonlyMap<string, RevisedSetting>): void
  list(): readonly KeptOverride[]
  /** Grows with every change of the list. */
  version(): number
}

/** Starts with those of an earlier process. */
export function createKeptOverrides(kept: readonly KeptOverride[]): KeptOverrides {
  const all = new Map(kept.map((one) => [one.partner, one]))
  let version = 0
  return {
    over: (partner) => {
      const own = all.get(partner.id)
      if (own === undefined) return partner
      const { id, fileStage } = partner
      const { override } = fileStage
      const isLower = override !== undefined && placeOf(override) <= placeOf(own.stage)
      return isLower ? partner : { id, fileStage: { ...fileStage, override: own.stage } }
    },
    note: ({ id, fileStage: { override } }, setting) => {
      const known = all.get(id)
      if (override === undefined || (known?.stage === override && known.revision === setting?.revision))
        return
      all.set(id, { partner: id, stage: override, revision: setting?.revision })
      version += 1
    },
    observe: (settings) => {
      for (const { partner, stage, revision } of all.values()) {
        const setting = settings.get(partner)
        if (setting === undefined) continue
        const isFollowed = lowered(setting, { override: stage }) === setting
        if (!isFollowed && (revision === undefined || revision === setting.revision)) continue
        all.delete(partner)
        version += 1
      }
    },
    list: () => [...all.values()],
    version: () => version,
  }
}
