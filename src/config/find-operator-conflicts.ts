import type { ErrorDetail } from '../errors.ts'

type Members = Readonly<Record<string, unknown>>

/** What is wrong with the operators of a rollout section as written: equal names or tokens, no approval by a second one. */
export function findOperatorConflicts(
  approval: unknown,
  operators: readonly Members[],
  { hasJournal }: { readonly hasJournal: boolean },
): readonly ErrorDetail[] {
  return [
    ...(approval === 'two' && !hasJournal
      ? [refuseApproval('needs a journal: with journal.url: none the stages are those of this file')]
      : []),
    ...usedTwice(operators, 'name', 'name'),
    ...usedTwice(operators, 'tokenSha256', 'token'),
    ...(approval === 'two' && operators.length > 0 ? findTooFew(operators) : []),
  ]
}

/** Names that differ in case only would be two people to the audit trail and one to its reader. */
function usedTwice(operators: readonly Members[], member: string, word: string): ErrorDetail[] {
  const firsts = new Map<string, number>()
  return operators.flatMap(({ [member]: value }, index) => {
    if (typeof value !== 'string') return []
    const first = firsts.get(value.toLowerCase())
    firsts.set(value.toLowerCase(), first ?? index)
    if (first === undefined) return []
    const message = `is the ${word} of rollout.operators[${first}] as well`
    return [{ code: 'conflict', message, target: `rollout.operators[${index}].${member}` }]
  })
}

function findTooFew(operators: readonly Members[]): ErrorDetail[] {
  const proposers = operators.filter(({ role }) => role === 'operator').length
  const approvers = operators.filter(({ role }) => role === 'approver').length
  if (proposers >= 1 && proposers + approvers >= 2) return []
  const message =
    'needs an operator who proposes a step and a second person, operator or approver, who approves it'
  return [refuseApproval(message)]
}

const refuseApproval = (message: string): ErrorDetail => ({
  code: 'conflict',
  message,
  target: 'rollout.approval',
})
