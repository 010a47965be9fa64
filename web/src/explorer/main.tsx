/** The explorer: a committee moves budgets and margins on the left, and sees what follows on the right. */
import { render } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FrontierChart, type Point } from "./chart";
import { type Answer, Details, Glance, Scenarios, Solutions, Unreliable } from "./effects";
import { type Fields, Groups, type Kind, Options, Total } from "./fields";
import { keyOf, readLink, writeLink } from "./link";
import { tell } from "./said";
import { type Compared, type Exact, type Fault, Faults, type Form, type Listed, type Settings, type View, ask, download, get } from "./server";
import { type Language, fill, languages } from "./words";

interface Column { name: string; settings: Settings }
interface Job { path: string; body: Record<string, unknown>; drag: number; question: string; done(result: View | { settings: Settings; said: string; view: View }): void; failed(faults: Fault[]): void }

const KEPT = "yupana-explorer-columns", MOST = 5;

type Given = "began" | "asIn2020" | "beganAsIn2020";
/** The scenarios that stand beside one's own from the start: what the configuration says, and the run of 2020. */
function given(form: Form): { name: Given; settings: Settings }[] {
  const { settings, production } = form;
  if (!production) return [{ name: "began", settings }];
  if (JSON.stringify(production) === JSON.stringify(settings)) return [{ name: "beganAsIn2020", settings }];
  return [{ name: "began", settings }, { name: "asIn2020", settings: production }];
}

function remembered(key: string): Column[] {
  try {
    const found = JSON.parse(sessionStorage.getItem(`${KEPT} ${key}`) ?? "[]");
    return Array.isArray(found) ? found.slice(0, MOST) : [];
  } catch {
    return [];
  }
}

/** At most one question is out; of those that come meanwhile the last is asked next. */
function useQueue(gone: string): { push(job: Job): void; busy: boolean } {
  const [busy, setBusy] = useState(false);
  const next = useRef<Job | null>(null);
  const running = useRef(false);
  const push = useCallback(async (job: Job) => {
    next.current = job;
    if (running.current) return;
    running.current = true;
    setBusy(true);
    while (next.current) {
      const now: Job = next.current;
      next.current = null;
      try {
        const result = await ask<View>(now.path, now.body, gone);
        const later = next.current as Job | null;
        if (!later || (now.drag && later.drag === now.drag) || !now.question) now.done(result);
      } catch (error) {
        if (!(error instanceof Faults)) throw error;
        if (!next.current) now.failed(error.faults);
      }
    }
    running.current = false;
    setBusy(false);
  }, [gone]);
  return { push, busy };
}

function App({ listed: every, version }: { listed: Listed[]; version: string }) {
  const [language, setLanguage] = useState<Language>(navigator.language.startsWith("es") ? "es" : "en");
  const words = languages[language];
  const listed = useMemo(() => tell(every, language), [every, language]);
  const [formSaid, setForm] = useState<Form | null>(null);
  const [settings, setSettings] = useState<Settings | null>(null);
  const [name, setName] = useState("");
  const [viewSaid, setView] = useState<View | null>(null);
  const [faultsSaid, setFaults] = useState<Fault[]>([]);
  const [refusedSaid, setRefused] = useState<Fault[]>([]);
  const [answerSaid, setAnswer] = useState<Answer>(null);
  const [exactSaid, setExact] = useState<Exact | null>(null);
  const [comparedSaid, setCompared] = useState<Compared | null>(null);
  const [columns, setColumns] = useState<Column[]>([]);
  const [undo, setUndo] = useState<Settings[]>([]);
  const [told, setTold] = useState("");
  const [heard, setHeard] = useState("");
  const [kind, setKind] = useState<Kind>("level");
  const current = useRef<Settings | null>(null);
  const step = useRef("");
  const drag = useRef<{ id: number; base: Settings } | null>(null);
  const drags = useRef(0);
  const opened = useRef(0);
  const queue = useQueue(words.gone);
  const file = useRef<HTMLInputElement>(null);

  const form = useMemo(() => tell(formSaid, language), [formSaid, language]);
  const view = useMemo(() => tell(viewSaid, language), [viewSaid, language]);
  const exact = useMemo(() => tell(exactSaid, language), [exactSaid, language]);
  const compared = useMemo(() => tell(comparedSaid, language), [comparedSaid, language]);
  const [faults, refused, answer] = useMemo(() => [tell(faultsSaid, language), tell(refusedSaid, language), tell(answerSaid, language)], [faultsSaid, refusedSaid, answerSaid, language]);

  const now = (next: Settings) => { current.current = next; setSettings(next); };
  const remember = (before: Settings, what: string) => {
    if (step.current !== what) setUndo((all) => [...all.slice(-199), before]);
    step.current = what;
  };
  const look = (key: string, next: Settings) => queue.push({
    path: "/api/view", body: { product: key, settings: next }, drag: 0, question: "",
    done: (result) => { setView(result as View); setFaults([]); },
    failed: (found) => setFaults(found),
  });

  const open = useCallback(async (hash: string) => {
    const wanted = keyOf(hash);
    const key = listed.some((one) => one.key === wanted) ? wanted : listed[0].key;
    opened.current += 1;
    const turn = opened.current;
    const found = await get<Form>(`/api/products/${key}`);
    if (turn !== opened.current) return;
    const linked = readLink(hash, key, found.settings);
    setForm(found); setName(linked.name); setView(null); setExact(null); setCompared(null); setUndo([]); setFaults([]); setRefused([]); setAnswer(null);
    setColumns(remembered(key));
    const [tables, levels] = [Object.keys(found.tables).length, Object.keys(found.levels).length];
    setKind(tables > 1 && tables < levels ? "table" : "level");
    setTold(wanted && wanted !== key ? fill(words.noPage, wanted) : linked.lost ? fill(words.lost, String(linked.lost)) : "");
    step.current = ""; drag.current = null;
    now(linked.settings);
    look(key, linked.settings);
  }, [every]);

  useEffect(() => {
    // The address may have been written anew since the change that is told.
    const arrive = (event: HashChangeEvent) => { void open(new URL(event.newURL).hash); };
    void open(location.hash);
    addEventListener("hashchange", arrive);
    return () => removeEventListener("hashchange", arrive);
  }, [open]);

  useEffect(() => {
    if (!form || !settings) return;
    document.title = `${form.title} · Yupana`;
    const link = writeLink(form.key, name, settings, form.settings);
    if (location.hash !== link) history.replaceState(null, "", link);
  }, [form, settings, name]);

  // What takes longer is asked when nothing has moved for a moment.
  useEffect(() => {
    if (!form || !settings || faults.length) return;
    setExact(null);
    let wanted = true;
    const timer = setTimeout(() => {
      const others = [...given(form), ...columns];
      ask<Compared>("/api/compare", { product: form.key, settings, others }, words.gone).then((found) => { if (wanted) setCompared(found); }, () => undefined);
      ask<Exact>("/api/exact", { product: form.key, settings }, words.gone).then((found) => { if (wanted) setExact(found); }, () => undefined);
    }, 400);
    return () => { wanted = false; clearTimeout(timer); };
  }, [form, settings, columns, faults.length]);

  useEffect(() => {
    if (!view || faults.length) return;
    const timer = setTimeout(() => {
      setHeard([...document.querySelectorAll(".glance-numbers div")].map((one) => [...one.children].slice(0, 2).map((part) => part.textContent).join(" ")).join("; "));
    }, 400);
    return () => clearTimeout(timer);
  }, [view, faults.length]);

  useEffect(() => { document.body.toggleAttribute("data-busy", queue.busy || (!view && !faults.length)); }, [queue.busy, view, faults]);
  useEffect(() => { document.documentElement.lang = language; }, [language]);

  const points = useMemo(() => {
    const found: Point[] = [];
    const kept = form ? given(form).length : 0;
    if (compared && !faults.length) compared.points.forEach((at, place) => { if (place && at && !(view && at[0] === view.frontier.here[0] && at[1] === view.frontier.here[1])) found.push({ name: place <= kept ? words[compared.names[place] as Given] : compared.names[place], at, kind: place <= kept ? "start" : "other" }); });
    if (view) found.push({ name: name || words.here, at: view.frontier.here, kind: "here" });
    return found;
  }, [compared, view, words, name, faults.length]);

  if (!form || !settings) return <p class="loading">…</p>;

  const change = (next: Settings, done = true) => {
    const before = current.current!;
    const changed = [...Object.keys(next.entries).filter((one) => next.entries[one] !== before.entries[one]), ...Object.keys(next.fields).filter((one) => next.fields[one] !== before.fields[one])];
    if (!changed.length) return;
    drag.current = null;
    remember(before, changed.join(" "));
    if (done && document.activeElement?.getAttribute("type") === "range") step.current = "";
    setAnswer(null); setRefused([]); setTold("");
    now(next);
    look(form.key, next);
  };
  const solve = (question: Record<string, unknown>, done = true) => {
    const before = drag.current?.base ?? current.current!;
    if (!drag.current) { drags.current += 1; drag.current = { id: drags.current, base: before }; }
    const id = drag.current.id;
    if (done) drag.current = null;
    // A first strategy of TopDown takes seconds.
    if (["equal", "least", "sum", "max", "round"].includes(String(question.question))) setAnswer({ question: String(question.question), said: words.waiting, wrong: false });
    queue.push({
      path: "/api/solve", body: { product: form.key, settings: before, ...question }, drag: id, question: String(question.question),
      done: (result) => {
        const found = result as { settings: Settings; said: string; view: View };
        remember(before, `solve ${id}`);
        now(found.settings); setView(found.view); setFaults([]); setRefused([]); setTold("");
        setAnswer({ question: String(question.question), said: found.said, wrong: false });
      },
      failed: (found) => {
        setRefused(found);
        setAnswer({ question: String(question.question), said: found.map((one) => one.message).join(" "), wrong: true });
      },
    });
  };
  const back = () => {
    const last = undo.at(-1);
    if (!last) return;
    setUndo(undo.slice(0, -1)); step.current = ""; setAnswer(null); setRefused([]);
    now(last); look(form.key, last);
  };
  const keepColumns = (next: Column[]) => {
    setColumns(next);
    try { sessionStorage.setItem(`${KEPT} ${form.key}`, JSON.stringify(next)); } catch { /* Without storage they go with the window. */ }
  };
  const fetchFile = async (path: string, more: object) => {
    try {
      download(await ask(path, { product: form.key, settings, name: name || words.mine, ...more }, words.gone));
    } catch (error) { if (error instanceof Faults) setTold(tell({ said: error.message }, language).said); else throw error; }
  };
  const load = async (chosen: File | undefined) => {
    if (!chosen) return;
    try {
      if (chosen.size > 500_000) throw new Faults([{ field: "file", message: "not a scenario: the file is too large" }]);
      const found = await ask<{ product: string; name: string; settings: Settings; said: string }>("/api/load", { text: await chosen.text() }, words.gone);
      if (found.product !== form.key) {
        const other = await get<Form>(`/api/products/${found.product}`);
        location.hash = writeLink(found.product, found.name, found.settings, other.settings);
      } else { setName(found.name); change(found.settings); }
      setTold(tell(found, language).said || found.name);
    } catch (error) { if (error instanceof Faults) setTold(tell({ said: error.message }, language).said); else throw error; }
  };

  const faulty = faults.length > 0;
  const symbol = view?.symbol ?? "ρ";
  const fields: Fields = { form, settings, view: faulty ? null : view, faults: [...faults, ...refused], words, symbol, change, solve };
  const homeless = faults.filter((fault) => !(fault.field in settings.entries) && !(fault.field in settings.fields));
  const products = [...new Set(listed.map((one) => one.product))];
  const product = listed.find((one) => one.key === form.key)?.product ?? "";
  const title = form.product === "tables" || form.title.startsWith(product) ? form.title : `${product}, ${form.title}`;
  return (
    <>
      <a class="skip" href="#fields" onClick={(event) => { event.preventDefault(); document.getElementById("fields")?.focus(); }}>{words.options}</a>
      <header>
        <p class="title">Yupana</p>
        <label class="chooser"><span class="unseen">{words.configuration}</span>
          <select value={form.key} onChange={(event) => { location.hash = event.currentTarget.value; }}>
            {products.map((product) => <optgroup label={product}>{listed.filter((one) => one.product === product).map((one) => <option value={one.key}>{`${product}: ${one.title}`}</option>)}</optgroup>)}
          </select></label>
        <label class="naming"><span class="unseen">{words.name}</span><input type="text" id="name" maxLength={80} autocomplete="off" placeholder={words.name} value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <button type="button" onClick={back} aria-disabled={!undo.length}>{words.undo}</button>
        <button type="button" onClick={() => change(form.settings)}>{words.start}</button>
        <button type="button" onClick={() => { void navigator.clipboard?.writeText(location.href); setTold(words.copied); }}>{words.link}</button>
        <details class="menu"><summary>{words.file}</summary><div>
          <button type="button" disabled={faulty} onClick={() => void fetchFile("/api/save", {})}>{words.save}</button>
          <button type="button" onClick={() => file.current?.click()}>{words.load}</button>
          <button type="button" disabled={faulty} onClick={() => void fetchFile("/api/export", { form: "configuration" })}>{words.config}</button>
          <button type="button" disabled={faulty} onClick={() => void fetchFile("/api/export", { form: "csv" })}>{words.csv}</button>
          <button type="button" onClick={() => print()}>{words.print}</button>
          <button type="button" onClick={() => setLanguage(language === "en" ? "es" : "en")}>{words.language}</button>
        </div></details>
        <input type="file" ref={file} accept=".json,application/json" hidden aria-label={words.load} onChange={(event) => { void load(event.currentTarget.files?.[0]); event.currentTarget.value = ""; }} />
      </header>
      <main class="instrument">
        <div class="question"><h1>{fill(words.question, title)}</h1>
          <p class="note">{fill(words.protects, form.unit)}</p>
          <p class="told" role="status">{told}</p></div>
        <section class="glance" aria-label={words.effects}>
          <p class="unseen" role="status">{heard}</p>
          {faulty && <div class="alarm" role="alert"><p>{words.correct}{" "}{homeless.length < faults.length && <button type="button" class="plain" onClick={() => document.querySelector<HTMLElement>("[aria-invalid]")?.focus()}>{words.goto}</button>}</p>{homeless.map((fault) => <p>{fault.field ? `${fault.field}: ` : ""}{fault.message}</p>)}</div>}
          {!faulty && view && <>
            {view.against_release.length > 0 && <p class="alarm">{fill(words.notRelease, view.against_release.join("; "))}</p>}
            <Glance view={view} words={words} language={language} />
            <FrontierChart frontier={view.frontier} symbol={symbol} points={points} words={words} language={language} onTotal={(total, done) => solve({ question: "total", value: total }, done)} />
          </>}
        </section>
        <section class="fields" id="fields" tabIndex={-1} aria-label={words.budget}>
          <Total key={form.key} fields={fields} />
          {Object.keys(form.tables).length > 1 && Object.keys(form.levels).length > 1 && <p class="by" role="group" aria-label={words.group}>{words.group}{" "}
            {(["table", "level"] as const).map((one) => <button type="button" aria-pressed={kind === one} onClick={() => setKind(one)}>{words[one]}</button>)}</p>}
          <Groups fields={fields} kind={kind} />
          <Options key={form.key} fields={fields} />
        </section>
        <div class="rest">
          {!faulty && view && <>
            <Solutions view={view} answer={answer} busy={queue.busy} solve={(question) => solve({ question })} words={words} />
            <Unreliable view={view} form={form} settings={settings} words={words} />
            <Scenarios compared={compared} here={name || words.here} given={given(form).length} count={columns.length} words={words}
              keep={() => {
                if (columns.length >= MOST) setTold(words.full);
                else if (!name.trim()) { setTold(words.unnamed); document.getElementById("name")?.focus(); }
                else keepColumns([...columns.filter((one) => one.name !== name.trim()), { name: name.trim(), settings }]);
              }}
              take={(at) => { if (at >= 0) setName(columns[at].name); change(at < 0 ? given(form).at(at)!.settings : columns[at].settings); }} remove={(at) => { keepColumns(columns.filter((_, place) => place !== at)); document.getElementById("keep")?.focus(); }} />
            <Details view={view} exact={exact} words={words} />
          </>}
          <p class="note">{fill(words.version, version)}</p>
        </div>
      </main>
    </>
  );
}

const root = document.getElementById("app")!;
get<{ version: string; products: Listed[] }>("/api/products").then(
  ({ version, products }) => render(<App listed={products} version={version} />, root),
  (error: Error) => { root.textContent = error.message; },
);
