import { createHash } from 'node:crypto'

import type { KnownTrail } from '../store/rollout-store.ts'
import { parseSetting } from '../store/stage-row.ts'
import type { StageSetting } from '../stage.ts'
import type { KeptOverride } from './kept-overrides.ts'
import type { PartnerView, RevisedSetting, StageView } from './view.ts'

/** Where the last snapshot outlives the process. */
export interface KeptSnapshots {
  /** The text that was saved last; undefined: none. Rejects where it cannot be read. */
  load(): Promise<string | undefined>
  /** Replaces it; durable as a whole or not at all. */
  save(text: string): Promise<void>
}

/** What an instance keeps for a start without the store. */
export interface KeptSnapshot {
  /** Undefined: the store was never read. */
  readonly view: StageView | undefined
  readonly overrides: readonly KeptOverride[]
  /** Clean partners with their revisions. */
  readonly clean: readonly (readonly [partner: string, revision: number])[]
}

const TITLE = 'markbridge stages 2'
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Writes a snapshot as text, with a checksum. */
export function encodeSnapshot({ view, clean, overrides }: KeptSnapshot): string {
  const partners =
    view && [...view.partners].map(([partner, { setting, pending }]) => ({ partner, setting, pending }))
  const [begins, damaged] = [[...(view?.begins ?? [])], [...(view?.damaged ?? [])]]
  const trail = view?.trail
  const text = JSON.stringify({ partners, begins, clean, damaged, overrides, trail } satisfies KeptText)
  return `${TITLE} ${digestOf(text)}\n${text}\n`
}

/** Reads such a text; undefined: it is not as it was written. */
export function parseSnapshot(kept: string): KeptSnapshot | undefined {
  const [, digest, text = ''] = /^markbridge stages [12] ([0-9a-f]{64})\n(.*)\n$/.exec(kept) ?? []
  if (digest === undefined || digest !== digestOf(text)) return undefined
  // The checksum says that this program has written it.
  const { partners, begins = [], clean, damaged, overrides = [], trail } = JSON.parse(text) as KeptText
  if (partners === undefined) return { view: undefined, clean, overrides }
  const views = new Map<string, PartnerView>()
  for (const { partner, setting, pending } of partners) {
    if (!isSetting(setting) || !isSetting(pending)) return undefined
    views.set(partner, { setting, pending, sound: true })
  }
  if (!begins.every(([, setting]) => isSetting(setting))) return undefined
  const known = { partners: views, begins: new Map(begins), damaged: new Set(damaged), trail }
  return { view: { ...known, trailIsSound: true, asked: undefined, instance: undefined }, clean, overrides }
}

interface KeptText {
  readonly partners?:
    | readonly {
        readonly partner: string
        readonly setting?: RevisedSetting | undefined
        readonly pending?: RevisedSetting | undefined
      }[]
    | undefined
  /** These three are missing in what an earlier version kept. */
  readonly trail?: KnownTrail | undefined
  readonly begins?: readonly (readonly [partner: string, setting: StageSetting])[]
  readonly overrides?: readonly KeptOverride[]
  readonly clean: readonly (readonly [string, number])[]
  readonly damaged: readonly string[]
}

/** False for a stage that this version does not know. */
function isSetting(setting: StageSetting | undefined): boolean {
  return setting === undefined || parseSetting(JSON.stringify(setting)) !== undefined
}
