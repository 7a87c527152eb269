# SPDX-License-Identifier: Apache-2.0
"""Hooks of MkDocs: links of pages to files outside of docs/.

A reader of the repository follows them; the site has no such files, so they become text there. Each must exist.
"""

import logging
import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)\s]*)?\)")
log = logging.getLogger("mkdocs.hooks.docs")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    docs = Path(config["docs_dir"]).resolve()
    folder = (docs / page.file.src_uri).parent

    def text_of(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if target.is_relative_to(docs):
            return match[0]
        if not target.exists():
            log.warning("%s links to '%s', which does not exist", page.file.src_uri, match[2])
        return match[1]

    return LINK.sub(text_of, markdown)
