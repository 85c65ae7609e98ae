import type { JudgedConditions } from './condition.ts'

/**
 * The reason of a step forward, and the verdict that the advice had when the operator took the step. `isDespite` is true if the verdict was
 * not `ready`.
 */
interface AdviceNote {
  readonly reason: string
  readonly verdict: string | undefined
  readonly isDespite: boolean
}

/** Appends to the reason of a step forward the verdict of the advice, and a note if the step was taken soon after a guard acted. */
export function addAdviceNote(
  reason: string,
  { verdict, missing }: Pick<JudgedConditions, 'verdict' | 'missing'>,
  isDespiteGuard: boolean,
): string {
  const known = [
    ...(isDespiteGuard ? ['despite the guard'] : []),
    verdict === 'ready' ? 'advice: ready' : ['despite the advice:', verdict + '.', ...missing].join(' '),
  ]
  return `${reason} (${known.join('; ')})`.trimStart()
}

const form =
  /^([^]*?) ?\((?:despite the guard; )?(?:advice: (ready)|despite the advice: (blocked|inconclusive|not yet)\. [^]*)\)$/

/** Parses a text that `addAdviceNote` wrote. For any other text, returns the text as the reason and no verdict. */
export function readAdviceNote(text: string): AdviceNote {
  const [, reason = text, ready, despite] = form.exec(text) ?? []
  return { reason, verdict: ready ?? despite, isDespite: despite !== undefined }
}
