import type { ComponentChildren } from 'preact'

import type { Visit } from '../access/visit.ts'
import type { ConsolePorts } from '../ports.ts'

/** The content of a page, for a browser and for a program. */
export interface Shown {
  readonly title: string
  /** The state that the title of the window names, such as `2 alarms`. Default: `title`. */
  readonly status?: string
  readonly body: ComponentChildren
  readonly json: unknown
  /** A whole HTML document that replaces `body`, with the Content-Security-Policy that it needs. */
  readonly document?: { readonly html: string; readonly policy: string }
}

/** The result of an action. The next page has the path `to` and shows `text` unless it is empty. A program gets `json`. */
export interface Done {
  readonly isDone: boolean
  readonly text: string
  readonly to: string
  readonly json: unknown
}

export interface Page {
  readonly path: string
  readonly show: (visit: Visit, ports: ConsolePorts) => Promise<Shown>
  /** Handles a POST to the same path. An action that changes nothing returns the content of a page. */
  readonly act?: (visit: Visit, ports: ConsolePorts) => Promise<Done | Shown>
}
