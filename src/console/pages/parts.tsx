import { createHash } from 'node:crypto'

import type { ComponentChildren } from 'preact'

import type { Visit } from '../access/visit.ts'

/** A time in UTC, to the second. */
export function Time({ ms }: { readonly ms: number | undefined }) {
  if (ms === undefined) return <>–</>
  const iso = new Date(ms).toISOString()
  return <time dateTime={iso}>{`${iso.slice(0, 10)} ${iso.slice(11, 19)}`}</time>
}

export const formatCount = (count: number): string => count.toLocaleString('en')

/** `1 mark`, `1,200 marks`. */
export const counted = (count: number, one: string, several = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : several}`

export const formatMs = (ms: number | undefined): string =>
  ms === undefined ? '–' : ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`

/** What a column shows; `number`: aligned to the right. */
export type Column<Row> = readonly [heading: string, cell: (row: Row) => ComponentChildren, align?: 'number']

interface TableProps<Row> {
  readonly caption: string
  readonly rows: readonly Row[]
  /** `false`: a column that is not shown. */
  readonly columns: readonly (Column<Row> | false)[]
  /** Shown in place of a table without a row. */
  readonly empty: string
}

/** A table; the first column names its rows. It scrolls on its own where it is too wide, by keyboard too. */
export function Table<Row>({ caption, rows, columns, empty }: TableProps<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>
  const shown = columns.filter((column) => column !== false)
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {shown.map(([heading, , align]) => (
              <th scope="col" class={align && 'n'}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {shown.map(([, cell, align], at) =>
                at === 0 ? <th scope="row">{cell(row)}</th> : <td class={align && 'n'}>{cell(row)}</td>,
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Names with their values; a value of `false` is left out with its name. */
export function Facts({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) {
  const shown = of.filter(([, value]) => value !== false)
  return (
    <dl class="facts">
      {shown.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** A part of a page below a heading of its own. */
export function Section({ title, children }: SectionProps) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

interface SectionProps {
  readonly title: string
  readonly children: ComponentChildren
}

interface TabsProps {
  readonly label: string
  readonly tabs: readonly (readonly [href: string, name: ComponentChildren, isCurrent?: boolean])[]
}

/** Links to other views of the same page. */
export function Tabs({ label, tabs }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([href, name, isCurrent = false]) => (
        <a href={href} aria-current={isCurrent ? 'true' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  )
}

/** A link to the page of a partner. */
export const PartnerLink = ({ id }: { readonly id: string }) => (
  <a href={`/partners/${encodeURIComponent(id)}`}>{id}</a>
)

/** An id, or that there is none. */
export const Id = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <>–</> : <span class="mono">{of}</span>

/** A word with a colour; the word alone says what the colour does. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

export type Tone = 'good' | 'bad' | 'note' | 'plain'

/** A part of a page that changes while it is looked at; `of` is what it shows. */
export function Live({ id, of, children }: LiveProps) {
  const hash = createHash('sha256').update(JSON.stringify(of)).digest('base64url').slice(0, 12)
  return (
    <div id={id} data-live={hash}>
      {children}
    </div>
  )
}

interface LiveProps {
  readonly id: string
  readonly of: unknown
  readonly children: ComponentChildren
}

interface FormProps {
  readonly visit: Visit
  readonly action: string
  readonly label: string
  readonly withFile?: boolean
  readonly children: ComponentChildren
}

/** A form that is posted with the token of its session. */
export function Form({ visit, action, label, withFile = false, children }: FormProps) {
  const enctype = withFile ? 'multipart/form-data' : 'application/x-www-form-urlencoded'
  return (
    <form method="post" action={action} aria-label={label} class="act" enctype={enctype}>
      <input type="hidden" name="csrf" value={visit.signedIn.csrf} />
      {children}
    </form>
  )
}

/** The field of a reason. `id` is unique on its page. */
export function Reason({ id }: { readonly id: string }) {
  return (
    <p class="field">
      <label for={id}>Reason, for the audit trail</label>
      <input id={id} name="reason" required maxLength={500} autocomplete="off" />
    </p>
  )
}

/** Figures over time, drawn where a browser runs scripts and as a table in any. */
export function Chart({ title, fromMs, stepMs, series }: ChartProps) {
  const points = Math.max(0, ...series.map(({ values }) => values.length))
  const times = Array.from({ length: points }, (_, at) => fromMs + at * stepMs)
  const chart = { x: times.map((ms) => ms / 1_000), series, stepped: true }
  const shown = times
    .map((ms, at) => ({ ms, values: series.map(({ values }) => values[at] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value !== 0))
    .slice(-MAX_ROWS)
    .reverse()
  return (
    <figure class="chart" data-chart={JSON.stringify(chart)}>
      <figcaption>{title}</figcaption>
      <div class="plot" aria-hidden="true" />
      <details>
        <summary>Figures of {title.toLowerCase()}</summary>
        <Table
          caption={title}
          rows={shown}
          columns={[
            ['from (UTC)', ({ ms }) => <Time ms={ms} />],
            ...series.map(({ label }, at): Column<Point> => [
              label,
              ({ values }) => formatCount(values[at] ?? 0),
              'number',
            ]),
          ]}
          empty="Nothing in this time."
        />
      </details>
    </figure>
  )
}

const MAX_ROWS = 100

interface Point {
  readonly ms: number
  readonly values: readonly (number | null)[]
}

interface ChartProps {
  readonly title: string
  readonly fromMs: number
  readonly stepMs: number
  readonly series: readonly Series[]
}

interface Series {
  readonly label: string
  /** Name of a colour of the style sheet. */
  readonly color: string
  readonly dash?: readonly number[] | undefined
  readonly values: readonly (number | null)[]
}

interface PagerProps {
  readonly query: URLSearchParams
  readonly path: string
  /** The parameter that names where a page begins. */
  readonly name: string
  readonly next: string | undefined
  readonly isFirst: boolean
}

/** Links to the first and the next page of a list. */
export function Pager({ query, path, name, next, isFirst }: PagerProps) {
  if (isFirst && next === undefined) return null
  const to = (value: string | undefined): string => {
    const changed = new URLSearchParams(query)
    changed.delete(name)
    if (value !== undefined) changed.set(name, value)
    return `${path}?${changed.toString()}`
  }
  const first = [to(undefined), 'First page'] as const
  const following = next === undefined ? [] : [[to(next), 'Next page'] as const]
  return <Tabs label="Pages of the list" tabs={[...(isFirst ? [] : [first]), ...following]} />
}
