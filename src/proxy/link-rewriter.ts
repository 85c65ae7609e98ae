import { Transform } from 'node:stream'

/** Longest link that is held back at the end of a chunk. */
const MAX_LINK_BYTES = 8_192
const LINK = /("(?:[^"\\]{0,200})@odata\.(?:nextLink|context|deltaLink)"\s{0,16}:\s{0,16}")([^"]*)"/g
const OPEN_LINK =
  /"[^"\\]{0,200}(?:@(?:o(?:d(?:a(?:t(?:a(?:\.[A-Za-z]{0,9}(?:"\s{0,16}(?::\s{0,16}(?:"[^"]*)?)?)?)?)?)?)?)?)?)?$/

/**
 * A transform for JSON bodies that turns absolute links of the upstream into links of the adapter, so that a client which
 * follows `@odata.nextLink` stays with it. Only links that begin with `from` change; another host in a context URL is the
 * service's own habit (service-facts 14). Everything else passes byte for byte, and only an unfinished link is held back.
 */
export function createLinkRewriter(from: string, to: string): Transform {
  let held = ''
  const rewrite = (text: string): string =>
    text.replace(LINK, (whole, name: string, link: string) =>
      belongsTo(link, from) ? `${name}${to}${link.slice(from.length)}"` : whole,
    )
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      // latin1 keeps each byte as one character, so a chunk may end inside a UTF-8 sequence.
      const text = held + chunk.toString('latin1')
      const tail = text.slice(-MAX_LINK_BYTES)
      const open = OPEN_LINK.exec(tail)
      const keep = open === null ? 0 : tail.length - open.index
      held = keep === 0 ? '' : text.slice(-keep)
      done(null, Buffer.from(rewrite(keep === 0 ? text : text.slice(0, -keep)), 'latin1'))
    },
    flush(done) {
      done(null, Buffer.from(rewrite(held), 'latin1'))
    },
  })
}

function belongsTo(link: string, base: string): boolean {
  if (!link.startsWith(base)) return false
  const next = link.charAt(base.length)
  return next === '' || next === '/' || next === '?' || next === '#'
}
