import { createHash } from 'node:crypto'

import { parseSetting } from '../store/stage-row.ts'
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
  readonly view: StageView
  /** Clean partners with their revisions. */
  readonly clean: readonly (readonly [partner: string, revision: number])[]
}

const TITLE = 'markbridge stages 1'
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Writes a snapshot as text, with a checksum. */
export function encodeSnapshot({ view, clean }: KeptSnapshot): string {
  const partners = [...view.partners].map(([partner, { setting, pending }]) => ({
    partner,
    setting,
    pending,
  }))
  const text = JSON.stringify({ partners, clean, damaged: [...view.damaged] })
  return `${TITLE} ${digestOf(text)}\n${text}\n`
}

/** Reads such a text; undefined: it is not as it was written. */
export function parseSnapshot(kept: string): KeptSnapshot | undefined {
  const [, digest, text = ''] = /^markbridge stages 1 ([0-9a-f]{64})\n(.*)\n$/.exec(kept) ?? []
  if (digest === undefined || digest !== digestOf(text)) return undefined
  // The checksum says that this program has written it.
  const { partners, clean, damaged } = JSON.parse(text) as KeptText
  const views = new Map<string, PartnerView>()
  for (const { partner, setting, pending } of partners) {
    if (!isSetting(setting) || !isSetting(pending)) return undefined
    views.set(partner, { setting, pending, sound: true })
  }
  const view = { partners: views, damaged: new Set(damaged), asked: undefined, instance: undefined }
  return { view, clean }
}

interface KeptText {
  readonly partners: readonly {
    readonly partner: string
    readonly setting?: RevisedSetting
    readonly pending?: RevisedSetting
  }[]
  readonly clean: readonly (readonly [string, number])[]
  readonly damaged: readonly string[]
}

/** False for a stage that this version does not know. */
function isSetting(setting: RevisedSetting | undefined): boolean {
  return setting === undefined || parseSetting(JSON.stringify(setting)) !== undefined
}
