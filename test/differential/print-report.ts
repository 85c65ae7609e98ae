import type { Pages } from './exchange.ts'
import type { Difference } from './run-reads.ts'

/** Formats a difference: the read, and the first page on which the two replies differ. */
export function describeDifference({ index, read, legacy, adapter }: Difference): string {
  const at = legacy.findIndex((page, number) => JSON.stringify(page) !== JSON.stringify(adapter[number]))
  const page = at < 0 ? legacy.length : at
  return [
    `read ${index}: ${shorten(read, 600)}`,
    ...[['legacy', legacy] as const, ['adapter', adapter] as const].map(
      ([name, pages]) => `  ${name}, page ${page + 1} of ${pages.length}: ${describePage(pages, page)}`,
    ),
  ].join('\n')
}

function describePage(pages: Pages, at: number): string {
  const page = pages[at]
  return page === undefined
    ? 'none'
    : shorten(`${page.status} ${JSON.stringify(page.headers)} ${page.body}`, 700)
}

const shorten = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)}… (${text.length} characters)`
