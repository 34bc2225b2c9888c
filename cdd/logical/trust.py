"""Which paths of a manifest may be opened: a manifest can come from a stranger.

What transactions made for it lies in its own folder of members, and is opened. Any other path is opened only
below a directory or URL that the program allows, after links are resolved. A relative path is looked for in
the folder of members, beside it, where the manifest is, and in the allowed directories, in this order.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from cdd import arguments
from cdd.logical.errors import MemberError


@dataclass(frozen=True, slots=True)
class Trust:
    """`home` is the manifest's own folder of members, None where it has none; `allow` is the program's."""

    home: str | None = None
    allow: tuple[str, ...] = ()
    granted: tuple[tuple[str, str], ...] = ()  # paths of the manifest that the program itself put there

    @classmethod
    def of(cls, home: str | None, allow: Iterable[str | os.PathLike[str]]) -> "Trust":
        if isinstance(allow, str | os.PathLike):
            allow = (allow,)
        places = []
        for place in allow:
            if not isinstance(place, str | os.PathLike):
                raise TypeError(f"allow lists directories and URLs, not {arguments.shown(place)}")
            text = os.fspath(place)
            places.append(text.rstrip("/") + "/" if "://" in text else str(Path(text).absolute()))
        return cls(home and str(Path(home).absolute()), tuple(places))

    @property
    def directories(self) -> list[str]:
        """Below which paths may be opened."""
        own = [self.home] if self.home else []
        return own + [place for place in self.allow if "://" not in place]

    def find(self, path: str, name: str) -> str:
        """The path or URL to open for the member of that `name`. MemberError where it is not allowed."""
        for known, real_path in self.granted:
            if known == path:
                return real_path
        if path.startswith("file://"):
            path = unquote(path.removeprefix("file://"))
        if "://" in path:
            return self._find_url(path, name)
        directories = [str(Path(place).resolve()) for place in self.directories]
        outside = ""
        is_absolute = Path(path).is_absolute()
        bases = [self.home, str(Path(self.home).parent), *self.allow] if self.home else self.directories
        candidates = [path] if is_absolute else [str(Path(b, path)) for b in bases if "://" not in b]
        for candidate in dict.fromkeys(candidates):
            real = Path(candidate).resolve()
            if not any(real.is_relative_to(place) for place in directories):
                outside = outside or (str(real) if is_absolute or real.exists() else "")
            elif real.exists():
                return str(real)
        if outside:
            raise MemberError(
                f"member {name!r} is {outside!r}: {self._rule()}, "
                f"allow=[{str(Path(outside).parent)!r}] would open it",
                name,
            )
        if not candidates:
            raise MemberError(
                f"member {name!r} is the relative path {path!r}: {self._rule()}, and it is looked for there",
                name,
            )
        raise MemberError(
            f"member {name!r}: no file {path!r} where it may be ({', '.join(candidates)}): {self._rule()}",
            name,
        )

    def _find_url(self, url: str, name: str) -> str:
        plain = unquote(unquote(url))
        if ".." in plain.replace("\\", "/").split("/"):
            raise MemberError(f"member {name!r} is {url!r}: a URL without '..' is wanted", name)
        if not any("://" in place and url.startswith(place) for place in self.allow):
            raise MemberError(f"member {name!r} is {url!r}: {self._rule()}", name)
        return url

    def _rule(self) -> str:
        allowed = [repr(place) for place in (*([self.home] if self.home else []), *self.allow)]
        listed = f"those below {', '.join(allowed)}" if allowed else "none"
        return f"of paths that a manifest names only what allow= lists is opened ({listed})"
