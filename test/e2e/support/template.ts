import { expect } from 'vitest'

const GUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const NOW = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z'
const PLACEHOLDER = /\{\{([a-z]+[0-9]*)\}\}/g

/**
 * Expects a text to match a template. `{{now}}` stands for a time. Any other name stands for a GUID that is the same wherever the name
 * occurs and differs from the GUIDs of other names.
 */
export function expectTemplate(actual: string, template: string): void {
  const names = new Set<string>()
  const pattern = template
    .split(PLACEHOLDER)
    .map((text, index) => {
      if (index % 2 === 0) return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
      if (text === 'now') return NOW
      if (names.has(text)) return `\\k<${text}>`
      names.add(text)
      return `(?<${text}>${GUID})`
    })
    .join('')
  const found = new RegExp(`^${pattern}$`, 's').exec(actual)
  // Fails with a message that shows where the texts differ.
  if (found === null) expect(actual).toBe(template)
  expect(new Set(Object.values(found?.groups ?? {})).size).toBe(names.size)
}

/** The beginning of the id that the scripted service assigns to the first record. */
const GIVEN = '00000001-0000-4000-8000-'

/**
 * Returns the template of a text: times become `{{now}}`, and GUIDs get the names of the older template in their order. Values that occur
 * in `kept`, such as the request or the older template, stay unchanged.
 */
export function toTemplate(actual: string, older: string, kept: string): string {
  const names = new Set([...older.matchAll(PLACEHOLDER)].map(([, name = '']) => name))
  names.delete('now')
  const free = names.values()
  const nameOf = new Map<string, string>()
  return actual
    .replaceAll(new RegExp(NOW, 'g'), (time) => (kept.includes(time) ? time : '{{now}}'))
    .replaceAll(new RegExp(GUID, 'g'), (id) => {
      if (id.startsWith(GIVEN) || kept.includes(id)) return id
      const name = nameOf.get(id) ?? free.next().value ?? `id${nameOf.size + 1}`
      nameOf.set(id, name)
      return `{{${name}}}`
    })
}

/** Returns true if a JSON value matches the template, where `{{now}}` stands for a time. */
export function matchesTemplate(actual: unknown, template: unknown): boolean {
  if (template === '{{now}}') return typeof actual === 'string' && new RegExp(`^${NOW}$`).test(actual)
  if (!isObject(actual) || !isObject(template)) return actual === template
  const names = Object.keys(template)
  return (
    Object.keys(actual).length === names.length &&
    names.every((name) => matchesTemplate(actual[name], template[name]))
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
