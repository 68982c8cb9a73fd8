#compdef aclog
# zsh completion of aclog. aclog completion zsh > "${fpath[1]}/_aclog"; or, after compinit: source <(aclog completion zsh)
_aclog() {
    local kind line value
    local -a lines values shown
    lines=("${(@f)$(_ACLOG_COMPLETE=zsh "${(Q)words[1]}" "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    kind=$lines[1]
    for line in "${(@)lines[2,-1]}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*}
        values+=("$value")
        if [[ $line == *$'\t'* ]]; then shown+=("$value  -- ${line#*$'\t'}"); else shown+=("$value"); fi
    done
    case $kind in
        files) compset -P '--*='; _files ;;
        directories) compset -P '--*='; _files -/ ;;
        joined) compadd -S '' -l -d shown -a -- values ;;
        words) compadd -l -d shown -a -- values ;;
    esac
}
if [[ $funcstack[1] == _aclog ]]; then _aclog "$@"; else compdef _aclog aclog; fi
