import type { ComponentChildren } from 'preact'

import type { TrendDay } from '../../compare/evidence/read-evidence.ts'
import { formatCount, formatCounted, formatLongDay, formatShare } from '../../compare/report/format.ts'
import { MAX_REASON } from '../../rollout/stage.ts'

/**
 * Shows a time in UTC, to the second. `at` is in milliseconds since the epoch or a text in ISO 8601. If the browser runs scripts and has
 * another time zone, the script of the pages adds the local time.
 */
export function Time({ at }: { readonly at: number | string | null | undefined }) {
  if (at === null || at === undefined) return <>–</>
  const iso = new Date(at).toISOString()
  return <time dateTime={iso}>{`${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`}</time>
}

const isMissing = (value: ComponentChildren): boolean => value === false || (value ?? '') === ''

const shownAs = (value: ComponentChildren): ComponentChildren =>
  typeof value === 'number' ? formatCount(value) : isMissing(value) ? '–' : value

export type Column<Row> = readonly [heading: string, cell: (row: Row) => ComponentChildren]

/**
 * Creates a component for tables. In a narrow space each row becomes a card, in which each value has the heading of its column beside it
 * and missing values are left out. `empty` is shown if there are no rows.
 */
export function table<Row>(caption: string, empty: string, columns: readonly Column<Row>[]) {
  return (rows: readonly Row[]) => {
    if (rows.length === 0) return <p class="empty">{empty}</p>
    const shown = rows.map((row) => columns.map(([, cell]) => cell(row)))
    const headings = columns.map(([heading], at) => {
      return { heading, numeric: shown.some((cells) => typeof cells[at] === 'number') ? 'n' : undefined }
    })
    return (
      <div class="rows">
        <table>
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              {headings.map(({ heading, numeric }) => (
                <th scope="col" class={numeric}>
                  {heading}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(([name, ...values]) => (
              <tr>
                <th scope="row" data-label={headings[0]?.heading}>
                  {shownAs(name)}
                </th>
                {values.map((value, at) => (
                  <td
                    class={isMissing(value) ? 'missing' : headings[at + 1]?.numeric}
                    data-label={headings[at + 1]?.heading}
                  >
                    {shownAs(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )
  }
}

/** Shows names with their values. A pair whose value is `false` is left out. */
export function Facts({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) {
  const shown = of.filter(([, value]) => value !== false)
  return (
    <dl class="facts">
      {shown.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{shownAs(value)}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Shows a section of a page under a heading. The titles on a page must differ, since the script finds sections by their titles. */
export function Section({ title, children }: Readonly<{ title: string; children: ComponentChildren }>) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

interface TabsProps {
  readonly label: string
  readonly name: string
  /** The tabs with the values of the parameter `name`. An `undefined` value removes the parameter from the address. */
  readonly tabs: readonly (readonly [value: string | undefined, text: string])[]
  readonly current?: string | undefined
  readonly query?: Readonly<Record<string, string>>
}

export function Tabs({ label, name, tabs, current, query = {} }: TabsProps) {
  const hrefOf = (value: string | undefined): string =>
    `?${new URLSearchParams({ ...query, ...(value !== undefined && { [name]: value }) }).toString()}`
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([value, text]) => (
        <a href={hrefOf(value)} aria-current={value === current ? 'true' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  )
}

interface PagerProps {
  readonly query: URLSearchParams
  readonly next: string | number | undefined
}

export const Pager = ({ query, next }: PagerProps) =>
  next !== undefined && (
    <Tabs
      label="Pages of the list"
      name="after"
      tabs={[[String(next), 'Next page']]}
      query={Object.fromEntries(query)}
    />
  )

export const PartnerLink = ({ id }: { readonly id: string }) => (
  <a href={`/partners/${encodeURIComponent(id)}`}>{id}</a>
)

export const Id = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <>–</> : <span class="mono">{of}</span>

/** Shows a word with a colour. The word has the same meaning without the colour. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

export type Tone = 'good' | 'bad' | 'note' | 'plain'

interface NoticeProps {
  readonly tone: Tone
  /** The problem or the result, as one or more sentences. */
  readonly what: ComponentChildren
  /** The link of the partner, or other text after `For`. */
  readonly whom?: ComponentChildren
  readonly since?: number | string | undefined
  /** The next action, as one or more sentences, and the link to its place. */
  readonly remedy?: ComponentChildren
  readonly link?: readonly [href: string, text: string] | undefined
  readonly role?: 'status' | 'alert' | undefined
}

export function Notice({ tone, what, whom, since, remedy, link, role }: NoticeProps) {
  return (
    <div class={`notice ${tone}`} role={role}>
      <p class="what">{what}</p>
      {whom !== undefined && (
        <p class="soft">
          For {whom}. {since !== undefined && ['Since ', <Time at={since} />, '.']}
        </p>
      )}
      {(remedy !== undefined || link !== undefined) && (
        <p>
          {remedy} {link && <a href={link[0]}>{link[1]}</a>}
        </p>
      )}
    </div>
  )
}

interface FormProps {
  readonly id: string
  readonly label: string
  readonly tone?: 'danger' | 'large' | undefined
  /** The field name of the button, if the action must know that this button was pressed. */
  readonly name?: string | undefined
  readonly hidden?: Readonly<Record<string, string>>
  readonly fields?: readonly Field[]
  readonly children?: ComponentChildren
}

/** Shows a form that is posted to the current page. */
export function Form({ id, label, tone, name, hidden = {}, fields = [], children }: FormProps) {
  const hasFile = fields.some(({ type }) => type === 'file')
  return (
    <form method="post" aria-label={label} class="act" enctype={hasFile ? 'multipart/form-data' : undefined}>
      {Object.entries(hidden).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
      <div class="fields">
        {fields.map((field) => (
          <Labelled id={`${id}-${field.name}`} {...field} />
        ))}
      </div>
      <button class={tone} name={name}>
        {label}
      </button>
    </form>
  )
}

/** A field of a form: a list of choices if the field has options, and otherwise an input or a `textarea`. */
export interface Field {
  readonly name: string
  readonly label: string
  readonly type?: string
  readonly value?: string | number
  readonly options?: readonly (readonly [value: string, text: string])[]
  readonly more?: Readonly<Record<string, string | number | boolean>>
}

function Labelled({ id, label, options, more, ...input }: Field & { readonly id: string }) {
  const name = <label for={id}>{label}</label>
  const own: object = { id, autocomplete: 'off', ...input, ...more }
  return (
    <p class="field">
      {name}
      {options === undefined ? (
        input.type === 'textarea' ? (
          <textarea {...own} rows={8} />
        ) : (
          <input {...own} />
        )
      ) : (
        <select id={id} name={input.name}>
          {options.map(([value, text]) => (
            <option value={value} selected={value === input.value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </p>
  )
}

export const reasonField: Field = {
  ...{ name: 'reason', label: 'Reason, for the audit trail' },
  more: { required: true, maxLength: MAX_REASON },
}

const shareOf = (days: readonly TrendDay[]): string => {
  const sum = (name: 'differing' | 'compared'): number => days.reduce((all, day) => all + day[name], 0)
  return `${formatShare(sum('differing'), sum('compared'))} of ${formatCounted(sum('compared'), 'record')}`
}

/**
 * Returns a sentence with the percentage of the compared records that differed on the last day, and on the days before it. Returns
 * `undefined` without days.
 */
export function formatTrend(days: readonly TrendDay[]): string | undefined {
  const [last, before] = [days.at(-1), days.slice(0, -1)]
  if (last === undefined) return undefined
  const earlier =
    before.length === 0 ? '' : `; ${shareOf(before)} on ${formatCounted(before.length, 'day')} before`
  return `${shareOf([last])} on ${formatLongDay(last.day)}${earlier}`
}
