import type { LearnedProposals, Proposal, Sighting } from './propose.ts'

/** The proposals as a patch of the configuration file, each line with the counts behind it; all else as comments. */
export function formatPatch(
  partner: string,
  { exchanges, unreadable, proposals, errors }: LearnedProposals,
): string {
  const changes = proposals.filter(({ result }) => result === 'change')
  const lines = [
    `# observed: ${counted(exchanges.batch, 'batch', 'batches')}, ${counted(exchanges.record, 'single record')}, ${counted(exchanges.read, 'read')}`,
    ...(unreadable > 0 ? [`# ${counted(unreadable, 'reply', 'replies')} could not be read`] : []),
    ...(changes.length > 0
      ? ['partners:', `  - id: ${partner}`, ...patchOf(changes)]
      : ['# nothing to change']),
    ...proposals
      .filter(({ result }) => result === 'keep')
      .map((one) => `# ${one.path}: ${one.current} fits: ${toText(one.evidence)}${noteOf(one)}`),
    ...proposals
      .filter(({ result }) => result === 'contradictory')
      .map(
        (one) =>
          `# ${one.path}: not proposed, the evidence is contradictory: ${toText(one.evidence)}${noteOf(one)}`,
      ),
    ...proposals
      .filter(({ result }) => result === 'none')
      .map(
        (one) =>
          `# ${one.path}: not proposed, ${one.evidence.length === 0 ? 'nothing was seen of it' : toText(one.evidence)}${noteOf(one)}`,
      ),
    ...errors.map(({ status, code, message, count }) => `# error ${status} ${code}: ${message} (${count})`),
  ]
  return lines.join('\n')
}

function patchOf(changes: readonly Proposal[]): readonly string[] {
  const lines: string[] = []
  let open = ''
  for (const one of changes) {
    const { path, proposed, evidence } = one
    const [first = '', second] = path.split('.')
    const section = second === undefined ? '' : first
    if (section !== open && section !== '') lines.push(`    ${section}:`)
    open = section
    lines.push(
      `${second === undefined ? '    ' : '      '}${second ?? first}: ${first === 'errorMessages' ? JSON.stringify(proposed) : String(proposed)} # ${toText(evidence)}${noteOf(one)}`,
    )
  }
  return lines
}

const counted = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`

const toText = (evidence: readonly Sighting[]): string =>
  evidence.map(({ seen, count }) => `${count} × ${seen}`).join(', ')

const noteOf = ({ note }: Proposal): string => (note === undefined ? '' : `; ${note}`)
