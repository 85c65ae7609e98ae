import { jsonReply } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'

/** A raw value or a count as text (OData protocol 11.2.4.1, 11.2.10). */
export function plainText(text: string): Reply {
  return jsonReply(200, text, { 'Content-Type': 'text/plain' })
}
