import { createHash } from 'node:crypto'

import { isSetting, type StageSetting } from '../stage.ts'
import type { KnownTrail } from '../store/rollout-store.ts'
import type { KeptOverride, KnownStages, PartnerView, StageView } from './known-stages.ts'

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

interface KeptText {
  readonly partners?: readonly (Partial<PartnerView> & { readonly partner: string })[] | undefined
  readonly trail?: KnownTrail | undefined
  readonly begins: readonly (readonly [partner: string, setting: StageSetting])[]
  readonly overrides: readonly KeptOverride[]
  readonly clean: readonly (readonly [string, number])[]
  readonly damaged: readonly string[]
}

const TITLE = 'markbridge stages 2'
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** What is to be kept of what is known. */
export function toKept({ view, progress, overrides }: KnownStages): KeptSnapshot {
  const clean = [...progress].flatMap(([partner, { state, revision }]) =>
    state === 'clean' ? [[partner, revision] as const] : [],
  )
  return { view, overrides: [...overrides.values()], clean }
}

/** What is known at a start by what was kept. */
export function fromKept({ view, overrides, clean }: KeptSnapshot): KnownStages {
  const progress = clean.map(
    ([partner, revision]) => [partner, { revision, state: 'clean', isQuiet: true }] as const,
  )
  return { view, progress: new Map(progress), overrides: new Map(overrides.map((one) => [one.partner, one])) }
}

/** Writes a snapshot as text, with a checksum. */
export function encodeSnapshot({ view, clean, overrides }: KeptSnapshot): string {
  const partners =
    view && [...view.partners].map(([partner, { setting, pending }]) => ({ partner, setting, pending }))
  const [begins, damaged] = [[...(view?.begins ?? [])], [...(view?.damaged ?? [])]]
  const trail = view?.trail
  const text = JSON.stringify({ partners, begins, clean, damaged, overrides, trail } satisfies KeptText)
  return `${TITLE} ${digestOf(text)}\n${text}\n`
}

/** Reads such a text; undefined: it is not as it was written, or has a stage that this version does not know. */
export function parseSnapshot(kept: string): KeptSnapshot | undefined {
  const [, digest, text = ''] = /^markbridge stages 2 ([0-9a-f]{64})\n(.*)\n$/.exec(kept) ?? []
  if (digest === undefined || digest !== digestOf(text)) return undefined
  // The checksum says that this program has written it.
  const { partners, begins, clean, damaged, overrides, trail } = JSON.parse(text) as KeptText
  if (partners === undefined) return { view: undefined, clean, overrides }
  const settings = [
    ...partners.flatMap(({ setting, pending }) => [setting, pending]),
    ...begins.map(([, one]) => one),
  ]
  if (!settings.every((setting) => setting === undefined || isSetting(setting))) return undefined
  const views = partners.map(({ partner, setting, pending }): [string, PartnerView] => [
    partner,
    { setting, pending, sound: true },
  ])
  const known = { partners: new Map(views), begins: new Map(begins), damaged: new Set(damaged), trail }
  return { view: { ...known, trailIsSound: true, asked: undefined, instance: undefined }, clean, overrides }
}
