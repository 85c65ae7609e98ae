import { unescape } from 'node:querystring'

import { MAX_PAGES, type Pages, type Reply } from './exchange.ts'
import { type Read, targetOf } from './grammar/read.ts'
import { NO_MARK, noMarkDay, type Samples } from './grammar/samples.ts'

/** The replies of the sandbox's V2 interface (`legacy`) and of the adapter to one read. */
export interface Pair {
  readonly legacy: Pages
  readonly adapter: Pages
  /** The reply of a V2 interface that allows long date ranges, or `undefined` if `legacy` did not refuse the range as too long. */
  readonly wide: Pages | undefined
}

/** An intended difference between the adapter and V2, which docs/reads.md explains under the same name. */
export interface Exception {
  readonly name: string
  /** A read that shows this difference. Every run sends the read. If the read no longer shows the difference, the exception is stale. */
  readonly example: (samples: Samples) => Partial<Read>
  /** Returns the pair without this difference, or `undefined` if the pair does not show the difference. */
  readonly removeFrom: (pair: Pair, read: Read) => Pair | undefined
}

const query = (...options: readonly (readonly [name: string, value: string])[]): Read['options'] =>
  options.map(([name, value]) => ({ name, value: encodeURIComponent(value) }))
const filter = (text: string, ...others: readonly (readonly [string, string])[]): Partial<Read> => ({
  options: query(['$filter', text], ...others),
})
const learnerOf = ({ learners }: Samples): string => `Learner eq ${learners[0] ?? ''}`

/** Returns the code of an OData error. */
function codeOf(pages: Pages): string | undefined {
  return /^\{"error":\{"code":"([^"]*)"/.exec(pages[0]?.body ?? '')?.[1]
}
const messageOf = (pages: Pages): string => pages[0]?.body ?? ''
const statusOf = (pages: Pages): number => pages[0]?.status ?? 0
/** Makes the two replies equal, because the whole difference is intended. */
const accept = (pair: Pair): Pair => ({ ...pair, legacy: pair.adapter })

/** The error codes of V2, each with the code of the adapter for the same fault. */
const codes: Readonly<Record<string, string>> = {
  InvalidQuery: 'ADP_QUERY',
  FilterRequired: 'ADP_QUERY',
  DateRangeRequired: 'ADP_UPSTREAM_REFUSED',
}

/** Returns an OData error with the code of the adapter, and without the two headers that only one of the interfaces sends. */
function plainError({ status, headers, body }: Reply): Reply {
  const kept = Object.entries(headers).filter(([name]) => !['content-type', 'odata-version'].includes(name))
  const plain = body.replaceAll(/"code":"(\w+)"/g, (_text, code: string) => `"code":"${codes[code] ?? code}"`)
  return { status, headers: Object.fromEntries(kept), body: plain }
}

export const exceptions: readonly Exception[] = [
  {
    name: 'wide range',
    example: (samples) => filter(`${wideRange} and ${learnerOf(samples)}`, ['$count', 'true']),
    removeFrom: ({ wide, ...pair }, read) => {
      if (wide === undefined || statusOf(pair.adapter) !== 200) return undefined
      if (hasOption(read, /^\$?orderby$/i)) return { legacy: wide, adapter: pair.adapter, wide: undefined }
      return { legacy: withoutOrder(wide, read), adapter: withoutOrder(pair.adapter, read), wide: undefined }
    },
  },
  {
    name: 'range of more than ten years',
    example: (samples) => filter(`${learnerOf(samples)} and ${wideRange.replace('2025', '1925')}`),
    removeFrom: (pair) =>
      pair.wide !== undefined && messageOf(pair.adapter).includes('The filter spans more than 3780 days')
        ? accept(pair)
        : undefined,
  },
  {
    name: 'order of a wide range',
    example: (samples) => filter(`${wideRange} and ${learnerOf(samples)}`, ['$orderby', 'Comment']),
    removeFrom: (pair) =>
      pair.wide !== undefined &&
      messageOf(pair.adapter).includes('can only be ordered by AttendableEventStart first')
        ? accept(pair)
        : undefined,
  },
  {
    name: 'history in a condition',
    example: (samples) => filter(`${learnerOf(samples)} and AttendanceHistorys/any()`),
    removeFrom: (pair) =>
      /AttendanceHistorys\S* has no counterpart in V3/.test(messageOf(pair.adapter))
        ? accept(pair)
        : undefined,
  },
  {
    name: 'token of a next link',
    example: (samples) => filter(learnerOf(samples), ['$skiptoken', '1.2.3']),
    removeFrom: (pair, read) =>
      statusOf(pair.adapter) === 400 &&
      /A next link allows no further options|was not issued to this client/.test(messageOf(pair.adapter)) &&
      /skiptoken/i.test(unescape(targetOf(read)))
        ? accept(pair)
        : undefined,
  },
  {
    name: 'recorded code for no mark',
    example: ({ noMarkLearner }) => filter(`Learner eq ${noMarkLearner} and ${noMarkDay}`),
    removeFrom: (pair) => {
      // Removes only the row of the mark, because its comment also occurs in the histories of other marks of the session.
      if (!messageOf(pair.legacy).includes(NO_MARK) || statusOf(pair.adapter) !== 200) return undefined
      const legacy = pair.legacy.map(withoutNoMark)
      return JSON.stringify(legacy) === JSON.stringify(pair.legacy) ? undefined : { ...pair, legacy }
    },
  },
  {
    name: 'raw number sign',
    example: (samples) => ({
      options: [...(filter(learnerOf(samples)).options ?? []), { name: 'note', value: '#1' }],
    }),
    removeFrom: (pair, read) =>
      codeOf(pair.adapter) === 'ADP_PATH' && targetOf(read).includes('#') ? accept(pair) : undefined,
  },
  {
    name: 'ambiguous path',
    example: () => ({ path: '/V2/Attendance//AttendanceRecords', options: [] }),
    removeFrom: (pair) =>
      codeOf(pair.adapter) === 'ADP_PATH' && [401, 404].includes(statusOf(pair.legacy))
        ? accept(pair)
        : undefined,
  },
  {
    name: 'credentials of documents',
    example: () => ({
      path: '/V2/Attendance/$metadata',
      options: [],
      headers: { Authorization: 'Bearer wrong' },
    }),
    removeFrom: (pair, read) =>
      statusOf(pair.legacy) === 401 &&
      statusOf(pair.adapter) === 200 &&
      /\/attendance\/?$|metadata\/?$/i.test(unescape(read.path))
        ? accept(pair)
        : undefined,
  },
  {
    name: 'refused before V3 is asked',
    example: () => ({ ...filter('Nothing'), headers: { Authorization: 'Bearer wrong' } }),
    removeFrom: (pair) =>
      (statusOf(pair.legacy) === 401 && [400, 404, 405, 406].includes(statusOf(pair.adapter))) ||
      (statusOf(pair.legacy) === 404 && statusOf(pair.adapter) === 405)
        ? accept(pair)
        : undefined,
  },
  {
    name: 'statuses of enrolments',
    example: () => ({
      path: '/V2/LearnerRegistations',
      options: query(['expand', 'Enrolments'], ['$top', '2']),
    }),
    removeFrom: (pair, read) => {
      if (!/learnerregist/i.test(unescape(read.path)) || statusOf(pair.adapter) !== 200) return undefined
      const without = /,"EnrolmentStatuses(?:@odata\.context)?":(?:\[(?:[^[\]]|\[[^[\]]*\])*\]|"[^"]*")/g
      const cut = (pages: Pages): Pages =>
        pages.map((page) => ({ ...page, body: page.body.replaceAll(without, '') }))
      const adapter = cut(pair.adapter)
      return JSON.stringify(adapter) === JSON.stringify(pair.adapter)
        ? undefined
        : { ...pair, adapter, legacy: cut(pair.legacy) }
    },
  },
  {
    name: 'place in a query of registrations',
    example: () => ({ path: '/V2/LearnerRegistations', options: query(['expand', 'Enrolments,Enrolments']) }),
    removeFrom: (pair, read) => {
      if (!/learnerregist/i.test(unescape(read.path)) || codeOf(pair.adapter) !== 'InvalidQuery')
        return undefined
      const cut = (pages: Pages): Pages =>
        pages.map((page) => ({ ...page, body: page.body.replaceAll(/, character \d+/g, '') }))
      return { ...pair, legacy: cut(pair.legacy) }
    },
  },
  {
    name: 'root of the learner interface',
    example: () => ({ path: '/V2/', options: [] }),
    removeFrom: (pair, read) =>
      /\/V2\/?$/i.test(unescape(read.path)) && statusOf(pair.adapter) === 404 ? accept(pair) : undefined,
  },
  {
    name: 'words of refusals',
    example: () => ({ path: '/V2/Attendance/AttendanceRecords/x', options: [] }),
    removeFrom: ({ legacy, adapter, ...rest }) =>
      [401, 404, 405, 406].includes(statusOf(adapter)) &&
      statusOf(legacy) === statusOf(adapter) &&
      legacy[0]?.headers['allow'] === adapter[0]?.headers['allow']
        ? { ...rest, legacy: adapter, adapter }
        : undefined,
  },
  {
    name: 'codes of errors',
    example: () => filter('Nothing'),
    removeFrom: ({ legacy, adapter, ...rest }) =>
      codeOf(legacy) !== undefined && codeOf(adapter) !== undefined && codeOf(legacy) !== codeOf(adapter)
        ? { ...rest, legacy: legacy.map(plainError), adapter: adapter.map(plainError) }
        : undefined,
  },
  {
    name: 'length of the V3 filter',
    example: ({ learners, starts }) =>
      filter(
        `AttendableEventStart eq ${starts[0] ?? ''} and (${Array.from({ length: 640 }, () => `Learner eq ${learners[0] ?? ''}`).join(' or ')})`,
      ),
    removeFrom: (pair, read) =>
      targetOf(read).length > 25_000 &&
      statusOf(pair.legacy) === 200 &&
      messageOf(pair.adapter).includes('has more than 32768 characters')
        ? accept(pair)
        : undefined,
  },
]

const wideRange =
  'AttendableEventStart ge 2025-12-06T00:00:00Z and AttendableEventStart lt 2026-07-01T00:00:00Z'

const hasOption = ({ options }: Read, name: RegExp): boolean =>
  options.some((option) => name.test(unescape(option.name)))

/** Returns the page without the mark whose code means "no mark". */
function withoutNoMark(page: Reply): Reply {
  const { value, ...others } = JSON.parse(page.body) as { value: { Comment: string | null }[] }
  const rows = value.filter(({ Comment }) => Comment !== NO_MARK)
  return { ...page, body: JSON.stringify({ ...others, value: rows }) }
}

/** Merges all pages into one page with sorted rows. If `$top`, `$skip` or `MAX_PAGES` cut off rows, the page has only their number. */
function withoutOrder(pages: Pages, read: Read): Pages {
  const [first] = pages
  if (first?.body.startsWith('{') !== true) return pages
  const bodies = pages.map(({ body }) => JSON.parse(body) as { value: unknown[]; '@odata.count'?: number })
  const rows = bodies.flatMap(({ value }) => value.map((row) => JSON.stringify(row)))
  const isWhole = pages.length < MAX_PAGES && !hasOption(read, /^\$?(?:top|skip)$/i)
  const [{ '@odata.count': count } = {}] = bodies
  const all = isWhole ? rows.toSorted() : rows.length
  return [{ ...first, body: JSON.stringify({ count, pages: pages.length, rows: all }) }]
}
