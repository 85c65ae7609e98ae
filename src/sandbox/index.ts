/** The sandbox, which takes the place of the real service. The sandbox serves both interfaces of service.md from one seeded database. */
export { createSandbox } from './sandbox.ts'
export type { Sandbox } from './sandbox.ts'
export { sandboxFileSchema } from './options.ts'
export type { SandboxOptions } from './options.ts'
