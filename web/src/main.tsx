// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app/app";
import { followHost } from "./app/host";
import { followHash } from "./app/route";
import { followTheme } from "./app/theme";
import { EmbeddedSource } from "./data/embedded";
import { HttpSource } from "./data/http";
import "./style/theme.css";
import "./style/app.css";
import "./style/widgets.css";
import "./style/views.css";
import "uplot/dist/uPlot.min.css";

followHash();
followTheme();
followHost();
const root = document.getElementById("app");
if (root) render(<App source={EmbeddedSource.ofPage(document) ?? new HttpSource()} />, root);
