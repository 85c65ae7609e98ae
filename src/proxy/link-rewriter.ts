import { Transform } from 'node:stream'

/** Longest name before `@odata.` in an annotation. */
const MAX_NAME = 200
const NAME = `"[^"\\\\]{0,${MAX_NAME}}@odata\\.(?:nextLink|context|deltaLink|id|(?:edit|read|navigation|association)Link)"\\s{0,16}`

/**
 * A transform for JSON bodies that turns absolute links of the upstream into links of the adapter, so that a client which
 * follows `@odata.nextLink` stays with it. Only links under `from` change; another host in a context URL is the service's
 * own habit (service-facts 14). Everything else passes byte for byte, and only what may become such a link is held back.
 */
export function createLinkRewriter(from: string, to: string): Transform {
  const link = new RegExp(`(${NAME}:\\s{0,16}")${escape(from)}(?=["/?#])`, 'g')
  // What may go on as a link: a name, or all before the end of `from` and the character after it.
  const begun = Array.from(from).reduceRight((rest, char) => `(?:${escape(char)}${rest})?`, '')
  const open = new RegExp(`"[^"\\\\]{0,${MAX_NAME + 20}}$|${NAME}(?::\\s{0,16}(?:"${begun})?)?$`)
  const maxOpen = MAX_NAME + 100 + from.length
  let held = ''
  const rewrite = (text: string): string => {
    let end = 0
    const rewritten = text.replace(link, (whole: string, name: string, offset: number) => {
      end = offset + whole.length
      return name + to
    })
    const tail = text.slice(Math.max(end, text.length - maxOpen))
    const at = tail.search(open)
    held = at === -1 ? '' : tail.slice(at)
    return held === '' ? rewritten : rewritten.slice(0, -held.length)
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      // latin1 keeps each byte as one character, so a chunk may end inside a UTF-8 sequence.
      done(null, Buffer.from(rewrite(held + chunk.toString('latin1')), 'latin1'))
    },
    flush(done) {
      done(null, Buffer.from(held, 'latin1'))
    },
  })
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
