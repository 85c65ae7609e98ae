import type { ComponentChildren } from 'preact'
import { renderToString } from 'preact-render-to-string'

import type { AdapterError } from '../../errors.ts'
import type { SignedIn } from '../access/sessions.ts'
import type { Visit } from '../access/visit.ts'
import { assetPath } from '../assets/assets.ts'
import type { Shown } from './page.ts'

/** What the page says about the last action. */
export interface Notice {
  readonly isDone: boolean
  readonly text: string
}

interface Place {
  readonly visit: Visit
  readonly hasSandbox: boolean
  readonly path: string
  /** Its sections are replaced where they change. */
  readonly isLive: boolean
  readonly notice: Notice | undefined
}

const places = [
  ['/', 'Overview'],
  ['/partners', 'Partners'],
  ['/batches', 'Batches'],
  ['/letters', 'Dead letters'],
  ['/comparison', 'Comparison'],
  ['/try', 'Try it'],
  ['/sandbox', 'Sandbox'],
  ['/audit', 'Audit trail'],
] as const

/** A page for a browser. */
export function renderPage({ title, body }: Shown, place: Place): string {
  const { visit, notice, isLive } = place
  return render(
    title,
    <>
      <Header signedIn={visit.signedIn} {...place} />
      <main id="main" aria-label={title} tabIndex={-1} data-live={isLive ? '' : undefined}>
        <h1>{title}</h1>
        {notice && (
          <p class={`notice ${notice.isDone ? 'good' : 'bad'}`} role="status">
            {notice.text}
          </p>
        )}
        {body}
      </main>
    </>,
  )
}

/** A request that was refused, or has failed. */
export function renderError(error: AdapterError, signedIn: SignedIn | undefined): string {
  const title = titles[error.status] ?? 'That did not work'
  return render(
    title,
    <>
      {signedIn && <Header signedIn={signedIn} path="" hasSandbox={false} />}
      <main id="main" tabIndex={-1}>
        <h1>{title}</h1>
        <p>
          {error.code === 'ADP_INTERNAL'
            ? 'The console failed on this request. Its log has the cause.'
            : error.message}
        </p>
        <p>
          <a href="/">Back to the overview</a>
        </p>
      </main>
    </>,
  )
}

const titles: Readonly<Record<number, string>> = {
  401: 'Sign in first',
  403: 'Not allowed',
  404: 'Not found',
  503: 'Not available',
}

/** The page on which an operator gives a token. */
export function renderLogin({ error, to }: { readonly error?: string; readonly to: string }): string {
  return render(
    'Sign in',
    <main id="main" tabIndex={-1} class="narrow">
      <h1>Sign in</h1>
      {error !== undefined && (
        <p class="notice bad" role="alert">
          {error}
        </p>
      )}
      <form method="post" action={`/login?to=${encodeURIComponent(to)}`} class="act">
        <p class="field">
          <label for="token">Token of the operator</label>
          <input id="token" name="token" type="password" required autocomplete="current-password" />
        </p>
        <button>Sign in</button>
      </form>
      <p class="soft">
        The tokens are those of <code>rollout.operators</code>. Where the configuration names no operators,
        the console prints a link for one use when it starts.
      </p>
    </main>,
  )
}

interface HeaderProps {
  readonly signedIn: SignedIn
  readonly path: string
  readonly hasSandbox: boolean
}

function Header({ signedIn, path, hasSandbox }: HeaderProps) {
  const { actor, csrf } = signedIn
  const shown = places.filter(([href]) => href !== '/sandbox' || (hasSandbox && actor.partners === undefined))
  return (
    <header>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <a class="brand" href="/">
        Markbridge
      </a>
      <nav aria-label="Pages">
        <ul>
          {shown.map(([href, name]) => (
            <li>
              <a href={href} aria-current={isWithin(path, href) ? 'page' : undefined}>
                {name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <form method="post" action="/logout" class="who">
        <input type="hidden" name="csrf" value={csrf} />
        <span title={actor.partners === undefined ? 'all partners' : actor.partners.join(', ')}>
          {actor.name} · {actor.role}
        </span>
        <button class="quiet">Sign out</button>
      </form>
    </header>
  )
}

const isWithin = (path: string, href: string): boolean =>
  path === href || (href !== '/' && path.startsWith(`${href}/`))

function render(title: string, content: ComponentChildren): string {
  const page = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>{`${title} · Markbridge`}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <link rel="stylesheet" href={assetPath('uplot.css')} />
        <link rel="stylesheet" href={assetPath('console.css')} />
        <link rel="modulepreload" href={assetPath('uplot.js')} />
        <script type="module" src={assetPath('console.js')} />
      </head>
      <body>{content}</body>
    </html>
  )
  return `<!doctype html>${renderToString(page)}`
}
