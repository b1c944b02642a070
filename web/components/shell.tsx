/** What stands around every page: the name, the pages, the theme switch; and the page itself, loaded when it is shown. */
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { href, page } from "../router.ts";
import { cycleTheme, themeChoice } from "../theme.ts";
import { Failed, Loading } from "./states.tsx";

/** A page. */
export interface PageEntry {
  /** In the address. */
  readonly name: string;
  /** In the navigation. */
  readonly title: string;
  load(): Promise<ComponentType>;
}

/** The frame of the app. The first page is the one without a name in the address. */
export function Shell({ brand, pages }: { brand: string; pages: readonly PageEntry[] }) {
  const current = pages.find(({ name }) => name === page.value) ?? (page.value === "" ? pages[0] : undefined);
  return (
    <>
      <button type="button" class="skip" onClick={focusMain}>
        Skip to the page
      </button>
      <header class="shell-head">
        <a class="brand" href={href(pages[0]!.name)}>
          <svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true">
            <path
              d="M1 1h4v4H1zM6 1h4v4H6zM11 6h4v4h-4zM1 11h4v4H1zM6 6h4v4H6z"
              fill="currentColor"
              opacity=".75"
            />
          </svg>
          {brand}
        </a>
        <nav aria-label="Pages">
          {pages.map(({ name, title }) => (
            <a key={name} href={href(name)} aria-current={current?.name === name ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <button type="button" class="plain" onClick={cycleTheme}>
          Theme: {themeChoice}
        </button>
      </header>
      {current ? <PageView key={current.name} entry={current} brand={brand} /> : <NoSuchPage pages={pages} />}
    </>
  );
}

/** The address belongs to the router: a link to #main would leave the page. */
function focusMain(): void {
  document.getElementById("main")?.focus();
}

function PageView({ entry, brand }: { entry: PageEntry; brand: string }) {
  const loaded = useSignal<{ view?: ComponentType; error?: unknown }>({});
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = `${entry.title} · ${brand}`;
    entry.load().then(
      (view) => {
        loaded.value = { view };
      },
      (error: unknown) => {
        loaded.value = { error };
      },
    );
  }, [entry, brand, loaded]);
  const { view: View, error } = loaded.value;
  return (
    <main id="main" tabIndex={-1} ref={main}>
      {View ? (
        <View />
      ) : error ? (
        <Failed what="The page could not be loaded" error={error} />
      ) : (
        <Loading what="Loading" />
      )}
    </main>
  );
}

function NoSuchPage({ pages }: { pages: readonly PageEntry[] }) {
  return (
    <main id="main" tabIndex={-1}>
      <div class="state">
        <h1>There is no such page</h1>
        <p>
          Perhaps the link is of another version. Try <a href={href(pages[0]!.name)}>{pages[0]!.title}</a>.
        </p>
      </div>
    </main>
  );
}
