import { html, type Markup } from './markup.ts'

/** A path of member names, which may break after each slash. */
export function codePath(path: string): Markup {
  const [first = '', ...others] = path.split('/')
  return html`<code>${first}${others.map((name) => html`/<wbr />${name}`)}</code>`
}
