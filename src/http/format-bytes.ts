const UNITS = [
  ['MiB', 1_048_576],
  ['KiB', 1_024],
] as const

/** `1 MiB`, `1.2 MiB`, `64 KiB`, `512 bytes`: rounded up, so that a size over a limit also reads so. */
export function formatBytes(bytes: number): string {
  const [unit, size] = UNITS.find(([, own]) => bytes >= own) ?? []
  return size === undefined ? `${bytes} bytes` : `${Math.ceil((bytes / size) * 10) / 10} ${unit}`
}
