/** HTML that is inserted into a page unchanged. Only `html` and trusted constants create it. */
export class Markup {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

/** The content of a template. Texts and numbers are escaped, and markup is not. Lists are joined. `undefined` and `false` are omitted. */
export type Content = Markup | string | number | false | undefined | readonly Content[]

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
}

/** Builds markup from a template. Contents are escaped so that they are safe in elements and in quoted attributes. */
export function html(strings: TemplateStringsArray, ...contents: readonly Content[]): Markup {
  return new Markup(strings.map((text, index) => text + render(contents[index])).join(''))
}

function render(content: Content): string {
  if (content === undefined || content === false) return ''
  if (content instanceof Markup) return content.toString()
  if (typeof content === 'string' || typeof content === 'number')
    return String(content).replaceAll(/[&<>"'`]/g, (character) => escapes[character] ?? '')
  return content.map(render).join('')
}
