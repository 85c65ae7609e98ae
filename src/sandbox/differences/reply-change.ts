import type { PartReply } from '../../v2/index.ts'

/** How a part of a V2 batch reply differs; docs/sandbox.md describes each. */
export const replyKinds = [
  'status',
  'errorCode',
  'errorMessage',
  'comment',
  'contentId',
  'noContentId',
  'last',
] as const

/** A change of the reply to a V2 batch. */
export interface ReplyChange {
  readonly kind: (typeof replyKinds)[number]
  /** The part, from 1; undefined: every one. */
  readonly part?: number | undefined
}

/** Changes the parts of a reply: the records are applied, and logged, as they were sent. */
export function changeReply(
  changes: readonly ReplyChange[],
  parts: readonly PartReply[],
): readonly PartReply[] {
  const changed = parts.map((reply, index) =>
    changes
      .filter(({ part = index + 1 }) => part === index + 1)
      .reduce((shown, { kind }) => changePart(kind, shown), reply),
  )
  const last = new Set(changes.filter(({ kind }) => kind === 'last').map(({ part = 1 }) => part - 1))
  return [...changed.filter((_, index) => !last.has(index)), ...changed.filter((_, index) => last.has(index))]
}

function changePart(kind: ReplyChange['kind'], reply: PartReply): PartReply {
  switch (kind) {
    case 'status':
      return { ...reply, status: reply.status < 300 ? 202 : 422 }
    case 'errorCode':
      return changeMembers(reply, 'ErrorCode', (code) => `${code}9`)
    case 'errorMessage':
      return changeMembers(reply, 'Message', (message) => `${message} Otherwise.`)
    case 'comment':
      return changeMembers(reply, 'Comment', (comment) => (comment === 'null' ? '#' : `${comment}#`))
    case 'contentId':
      return reply.contentId === undefined ? reply : { ...reply, contentId: `${reply.contentId}0` }
    case 'noContentId':
      return { ...reply, contentId: undefined }
    case 'last':
      return reply
  }
}

/** Changes the members of that name at any depth of the JSON of a part. */
function changeMembers(reply: PartReply, name: string, change: (value: string) => string): PartReply {
  if (reply.json === undefined) return reply
  const changed = JSON.parse(reply.json, (member, value: unknown) =>
    member === name && (typeof value === 'string' || value === null) ? change(String(value)) : value,
  ) as unknown
  return { ...reply, json: JSON.stringify(changed) }
}
