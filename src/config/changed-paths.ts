import { Secret } from './secret.ts'

/** Paths of the values that differ between two values of one schema, such as `listen.port`; no value is in them. */
export function changedPaths(before: unknown, after: unknown, path = ''): readonly string[] {
  if (Array.isArray(before) && Array.isArray(after)) {
    const longer = before.length > after.length ? before : after
    return longer.flatMap((_, index) => changedPaths(before[index], after[index], `${path}[${index}]`))
  }
  if (isMapping(before) && isMapping(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...names].flatMap((name) =>
      changedPaths(before[name], after[name], path === '' ? name : `${path}.${name}`),
    )
  }
  return isSame(before, after) ? [] : [path]
}

function isSame(before: unknown, after: unknown): boolean {
  if (before instanceof Secret && after instanceof Secret) return before.reveal() === after.reveal()
  if (before instanceof URL && after instanceof URL) return before.href === after.href
  return before === after
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
