import { z } from 'zod'
import type { Identities } from '../identity.ts'
import { hashName } from '../random.ts'
import type { CodeTable } from '../seed/codes.ts'
import type { Face, Mark } from '../store/marks.ts'
import { readBody, type Setting } from './setting.ts'

const kinds = ['recordedOn', 'commentCut', 'code', 'id', 'missing'] as const
type Kind = (typeof kinds)[number]

const id = z.guid().toLowerCase()
const schema = z.strictObject({
  /** The interface that shows changed values. The other interface shows the stored values. */
  face: z.enum(['V2', 'V3']),
  /** The marks that differ, by learner and event. A mark can occur several times with different kinds. */
  rows: z
    .array(z.strictObject({ learner: id, event: id, kind: z.enum(kinds) }))
    .max(10_000)
    .default([]),
  /** The fraction of all other marks that differ too, from 0 to 1, each in one of `kinds`. The same marks are chosen each time. */
  share: z.number().min(0).max(1).default(0),
  kinds: z
    .array(z.enum(kinds))
    .min(1)
    .default([...kinds]),
})

type DifferencePlan = z.output<typeof schema>

/**
 * The kind (see `Identities`) of the id that a mark with the difference `id` shows in place of its own id. A read by this id finds the mark
 * too.
 */
export const otherIdKind = 'otherMark'

/** Creates the differences between V2 and V3, which affect only reads of marks. Without a plan, there are no differences. */
export function createDifferences(ids: Identities, codes: CodeTable) {
  let plan: DifferencePlan | null = null
  let byPlace: ReadonlyMap<string, readonly Kind[]> = new Map()
  const kindsOf = ({ share, kinds: drawn }: DifferencePlan, { learner, session }: Mark): readonly Kind[] => {
    const chosen = byPlace.get(`${ids.guid('learner', learner)} ${ids.guid('session', session)}`)
    if (chosen !== undefined || share === 0) return chosen ?? []
    const hash = hashName(`difference ${learner} ${session}`)
    return hash / 2 ** 32 < share ? drawn.slice(hash % drawn.length).slice(0, 1) : []
  }
  const change = (mark: Mark, kind: Kind): Mark | undefined => {
    switch (kind) {
      case 'recordedOn':
        return { ...mark, recordedOn: mark.recordedOn + 3_600_000 }
      case 'commentCut': {
        // The comment is cut between code points, so that no surrogate pair is split.
        const points = Array.from(mark.comment ?? '')
        return { ...mark, comment: mark.comment && points.slice(0, points.length >> 1).join('') }
      }
      case 'code':
        return { ...mark, code: codes.another(mark.code) }
      case 'id':
        return { ...mark, externalId: ids.guid(otherIdKind, mark.learner, mark.session) }
      case 'missing':
        return undefined
    }
  }
  const setting: Setting<DifferencePlan | null> = {
    current: () => plan,
    clear: () => {
      plan = null
    },
    put: (body) => {
      plan = readBody(schema, body, 'The differences')
      const rows = Map.groupBy(plan.rows, ({ learner, event }) => `${learner} ${event}`)
      byPlace = new Map([...rows].map(([place, own]) => [place, own.map(({ kind }) => kind)]))
    },
  }
  return {
    ...setting,
    show: (face: Face | undefined, marks: readonly Mark[]): readonly Mark[] => {
      if (plan === null || plan.face !== face) return marks
      const shown = plan
      return marks.flatMap((mark) => {
        const changed = kindsOf(shown, mark).reduce<Mark | undefined>(
          (one, kind) => one && change(one, kind),
          mark,
        )
        return changed ?? []
      })
    },
  }
}
