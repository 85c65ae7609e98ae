/** The stand-in service: both faces of service.md over one seeded store. */
export { createSandbox } from './sandbox.ts'
export type { Sandbox } from './sandbox.ts'
export { sandboxFileSchema } from './options.ts'
export type { SandboxOptions } from './options.ts'
