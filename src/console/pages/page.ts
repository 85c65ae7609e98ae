import type { ComponentChildren } from 'preact'

import type { Visit } from '../access/visit.ts'
import type { ConsolePorts } from '../ports.ts'

/** What a page shows, once for a browser and once for a program. */
export interface Shown {
  readonly title: string
  readonly body: ComponentChildren
  readonly json: unknown
  /** In place of `body`: a whole page with the Content-Security-Policy that it needs. */
  readonly document?: { readonly html: string; readonly policy: string }
}

/** What became of an action: said on the page that follows, unless it is empty, and the answer for a program. */
export interface Done {
  readonly isDone: boolean
  readonly text: string
  /** The page that follows. */
  readonly to: string
  readonly json: unknown
}

/** A page, and the actions that are taken on it. */
export interface Page {
  /** A pattern of Express, which GET shows. */
  readonly path: string
  /** Its sections change while it is looked at. */
  readonly isLive?: true
  readonly show: (visit: Visit, ports: ConsolePorts) => Promise<Shown>
  /** Called for a POST of the same path; what changes nothing is shown at once. */
  readonly act?: (visit: Visit, ports: ConsolePorts) => Promise<Done | Shown>
  /** The largest file of its form, in bytes; undefined: it has none. */
  readonly takesFile?: number
}
