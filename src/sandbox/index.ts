/** A stand-in for the real service: both interfaces of service.md over one seeded database. */
export { createSandbox } from './sandbox.ts'
export type { Sandbox } from './sandbox.ts'
export { sandboxFileSchema } from './options.ts'
export type { SandboxOptions } from './options.ts'
