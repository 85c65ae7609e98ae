const MAX_SHOWN = 300

/** Control characters, marks that hide or turn the direction of text, separators of lines, and halves of surrogate pairs. */
const unprintable =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu

/** A foreign text as it may stand in a report: on one line, at most 300 characters, without those that hide or reorder others. */
export function cleanText(text: string): string {
  const printable = text.replaceAll(/[\t\r\n]+/g, ' ').replaceAll(unprintable, '\ufffd')
  const characters = Array.from(printable)
  return characters.length <= MAX_SHOWN ? printable : `${characters.slice(0, MAX_SHOWN).join('')}…`
}

/** Cleans every text of a document. */
export function cleanTexts<Value>(value: Value): Value {
  return clean(value) as Value
}

function clean(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map(clean)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, clean(one)]))
}
